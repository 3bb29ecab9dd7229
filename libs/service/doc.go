// Package service turns a program into a value: settings in, Run(ctx), an ordered stop.
//
// Settings come from flags, then environment, then one YAML file, then defaults. One name serves
// all three: the setting "database-url" is --database-url, CHANDLER_DATABASE_URL and the key
// database-url. A secret may also come from a file named by CHANDLER_<NAME>_FILE, and has no flag,
// since arguments of a process can be read by others.
//
// A Group starts its parts in order and stops them in reverse, so that what takes in work stops
// before what carries it out. Main is all that a main function needs.
package service
