// Package permissions finds the permissions that a service account lacks to carry out a plan (R-OG-60, R-IP-41): all of
// them at once, before the first step. It models the two checks of the API server. Any authorizer may allow the account
// to write an object. Only RBAC decides whether the account holds every rule of a Role before it may write or bind the
// Role.
package permissions
