// Package mirror keeps in one cluster what package services/installer/mirror says there is to be: mirrors of OLM's
// kinds, their definitions and the admission policy over them. It also watches whether OLM itself is at work.
//
// What was written is remembered with the resource version that it got, and a watch of metadata tells when somebody
// else wrote or deleted: a reconcile of a namespace in which nothing changed makes no request. What is remembered can be
// lost at any time; then each mirror is read once and compared. Objects of the same names that bear no label of a
// mirror are somebody else's and stay as they are.
package mirror
