// Command calls uses what testdata/db has an entry for.
package main

import "net/url"

func main() {
	if _, err := url.Parse("https://example.com"); err != nil {
		panic(err)
	}
}
