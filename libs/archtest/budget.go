package archtest

// Budget bounds what a module may depend on. Raising a number is a decision: say in the change why.
type Budget struct {
	Module string
	// Direct is how many outside modules the non-test code of the module imports itself.
	Direct int
	// Linked is how many packages beyond the standard library its binary holds; 0 for a library.
	Linked int
}

// Budgets are the bounds of every module of the workspace.
func Budgets() []Budget {
	return []Budget{
		{Module: "migrations", Direct: 0},
		{Module: "libs", Direct: 36},
		{Module: "services/catalog-indexer", Direct: 10, Linked: 900},
		{Module: "services/resolver", Direct: 8, Linked: 430},
		{Module: "services/installer", Direct: 14, Linked: 860},
		{Module: "services/gateway", Direct: 10, Linked: 460},
		{Module: "cmd/chandler", Direct: 12, Linked: 1300},
		{Module: "test", Direct: 10},
	}
}

const (
	// maxFileLines bounds a file that people write and read.
	maxFileLines = 600
	// maxPackageFiles bounds the non-test files of a package.
	maxPackageFiles = 30
)
