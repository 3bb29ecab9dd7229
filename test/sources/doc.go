// Package sources tests catalog sources against the real parts that they read from.
package sources
