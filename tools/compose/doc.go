// Package compose proves that docker-compose.yaml and Dockerfile mean what they should, with the parsers of docker
// themselves. It is a module of its own, outside the workspace, so that the parsers'
// requirements do not lift those of the services. Run by make check.
package compose
