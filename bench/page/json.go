package page

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the report as one JSON object: each figure of a table with
// its value and unit, each chart with its points.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}
