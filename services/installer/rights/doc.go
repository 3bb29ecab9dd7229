// Package rights says what an account lacks to carry out a plan (R-OG-60, R-IP-41): every right at once, before the
// first step. It knows the two checks of the API server: whether the account may write an object, which any authorizer
// can allow, and whether it holds all that a Role gives before it may write or bind it, which only RBAC can tell.
package rights
