// Renders a Helm chart with what Helm itself renders with: Go's text/template, the functions of sprig, and the functions
// that Helm adds (helm.sh/helm/v3/pkg/engine). Debian has no package of Helm.
//
//	helm-template CHART VALUES.json RELEASE NAMESPACE   writes all manifests to standard output
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

func main() {
	if len(os.Args) != 5 {
		fail(fmt.Errorf("usage: helm-template CHART VALUES.json RELEASE NAMESPACE"))
	}
	chart, namespace := os.Args[1], os.Args[4]
	values := read(filepath.Join(chart, "values.yaml"))
	merge(values, read(os.Args[2]))
	release := map[string]interface{}{
		"Name": os.Args[3], "Namespace": namespace, "Service": "Helm", "Revision": 1,
		"IsInstall": true, "IsUpgrade": false,
	}
	about := read(filepath.Join(chart, "Chart.yaml"))
	given := map[string]interface{}{"Values": values, "Release": release, "Chart": map[string]interface{}{
		"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"],
	}}
	// As in Helm: an unknown value is empty and does not fail.
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	names, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	fail(err)
	sort.Strings(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		fail(err)
		_, err = all.New(filepath.Base(name)).Parse(string(text))
		fail(err)
	}
	for _, name := range names {
		base := filepath.Base(name)
		if strings.HasPrefix(base, "_") || !strings.HasSuffix(base, ".yaml") {
			continue
		}
		var out bytes.Buffer
		fail(all.ExecuteTemplate(&out, base, given))
		text := strings.ReplaceAll(out.String(), "<no value>", "")
		if strings.TrimSpace(text) != "" {
			fmt.Printf("---\n# %s\n%s\n", base, text)
		}
	}
}

func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env")
	delete(known, "expandenv")
	known["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		fail(err)
		return strings.TrimSuffix(string(text), "\n")
	}
	known["toJson"] = func(value interface{}) string {
		text, err := json.Marshal(value)
		fail(err)
		return string(text)
	}
	known["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	return known
}

func read(path string) map[string]interface{} {
	text, err := os.ReadFile(path)
	fail(err)
	found := map[string]interface{}{}
	fail(yaml.Unmarshal(text, &found))
	return found
}

// Tables are merged, a null removes, everything else replaces.
func merge(into, from map[string]interface{}) {
	for key, value := range from {
		table, isTable := value.(map[string]interface{})
		known, wasTable := into[key].(map[string]interface{})
		switch {
		case value == nil:
			delete(into, key)
		case isTable && wasTable:
			merge(known, table)
		default:
			into[key] = value
		}
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
