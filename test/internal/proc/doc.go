// Package proc starts, watches and ends the processes of tests and of the demo.
//
// Two things keep a machine clean. Every process asks the kernel for a death signal, so that it is killed with the
// process that started it. And every process has an ID that stays true when its pid is given to another one, so that
// whoever finds such an ID in a file can end exactly that process and no other.
package proc
