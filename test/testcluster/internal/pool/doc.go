// Package pool is the list of what test clusters run on this machine, and the rule for how many there may be.
//
// Test packages are processes of their own, so the list is a directory: one file for each member, written under a file
// lock. A member belongs to the process that started it, its owner. When the owner is gone, whoever comes next ends the
// processes of the member and removes its files. There is one pool for each user, since one user cannot end the
// processes of another.
//
// Holders wait for their turn only while they hold nothing. Who holds a member already gets the next one at once: so
// two tests that need two clusters each can never wait for one another.
package pool
