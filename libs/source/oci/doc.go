// Package oci reads catalog and bundle images from registries and from OCI layouts on disk.
//
// Whatever a registry answers is checked before it is believed: a manifest and each blob against the
// digest and the size under which it was asked for, so that a mirror, a cache or a hostile registry can
// withhold content but not change it. Of the layers only the directory that is wanted is unpacked, with
// whiteouts applied, under the limits of libs/source/archive.
//
// An image is asked for at each mirror in turn and then at its own registry (source.Candidates). What
// was wrong with each of them is in the error. Credentials are those of the longest path that fits
// (R-DIS-5), and go to the registry that they are for and to the token service of its own site.
package oci
