//go:build race

package sqlite

// Under the race detector one random history takes seconds.
const randomChecks = "25"

// burialSteps is how many steps TestBurialsRandomly takes.
const burialSteps = 10
