// Package olm reads the YAML that OLM's users have (Subscription, OperatorGroup, CatalogSource, OperatorHub), and
// Chandler's own ApprovalPolicy, FleetSubscription, Role and RoleBinding, and says what it means to Chandler.
//
// Nothing is dropped silently: a field that Chandler does not carry out is an error that names it.
// Metadata beside name and namespace, and status, say nothing about intent and are left out.
package olm
