// Command clean imports the package, and not the function, that testdata/db has an entry for.
package main

import "net/url"

func main() { println(url.PathEscape("a b")) }
