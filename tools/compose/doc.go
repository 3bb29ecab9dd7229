// Package compose proves that docker-compose.yaml means what it should, with the parser that docker
// compose itself uses. It is a module of its own, outside the workspace, so that the parser's
// requirements do not lift those of the services. Run by make check.
package compose
