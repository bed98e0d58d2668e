// Evaluates root selectors as Grafana's Infinity does: by gjson where that finds something, else by JSONata.
// A line of {"expression", "input"} in, a line of the result out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/tidwall/gjson"
	jsonata "github.com/xiatechs/jsonata-go"
)

type question struct {
	Expression string          `json:"expression"`
	Input      json.RawMessage `json:"input"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var asked question
		must(json.Unmarshal(lines.Bytes(), &asked))
		if found := gjson.GetBytes(asked.Input, asked.Expression); found.Exists() {
			fmt.Println(found.Raw)
			continue
		}
		var input any
		must(json.Unmarshal(asked.Input, &input))
		result, err := jsonata.MustCompile(asked.Expression).Eval(input)
		must(err)
		text, err := json.Marshal(result)
		must(err)
		fmt.Println(string(text))
	}
	must(lines.Err())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
