// Package server answers api.Registry from any catalog (R-CAT-70), so that clients of catalog servers
// can read what Chandler serves. It keeps the update graphs in memory, about a kilobyte for each
// version; documents and manifests are fetched when they are asked for, one package at a time.
//
// What clients see, beyond the names of the calls:
//
//   - GetBundle and the other calls for one bundle return csvJson and object[] of the manifests where
//     they are at hand. Where the catalog has only the display part of the CSV, csvJson is made of it,
//     with the icon of the package, and object[] holds nothing else.
//   - ListBundles leaves both out where the bundle has an image, since that holds the manifests.
//   - An entry is offered as a replacement only where the update graph leads there: one, the nearest
//     to the head, or none, and always the same (R-CAT-72).
//   - A channel without one head is not served, nor a package whose default channel is such a one:
//     clients could not read the answer. Both are logged once for each revision.
package server
