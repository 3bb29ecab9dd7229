package client

import (
	"context"
	"fmt"
	"iter"
	"net/url"
)

// maxPages bounds how many pages of a list are followed, against a server that never ends one.
const maxPages = 10_000

// pages follows the pages of a list to its end, or to the first error.
func pages[T any](ctx context.Context, c *Client, r Request, opts []Option) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for range maxPages {
			var page struct {
				Items []T    `json:"items"`
				Next  string `json:"next"`
			}
			if err := c.Do(ctx, r, &page, opts...); err != nil {
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			if r.Query == nil {
				r.Query = url.Values{}
			}
			r.Query.Set("cursor", page.Next)
		}
		yield(none, fmt.Errorf("GET %s: the list did not end after %d pages", r.path, maxPages))
	}
}

// Pages is all of a list whose elements are decoded as T: for callers that have types of their own.
func Pages[T any](ctx context.Context, c *Client, r Request, opts ...Option) iter.Seq2[T, error] {
	return pages[T](ctx, c, r, opts)
}
