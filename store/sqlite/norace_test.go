//go:build !race

package sqlite

const randomChecks = "100"

// burialSteps is how many steps TestBurialsRandomly takes.
const burialSteps = 40
