// Collects the scripts of k6 from the source of its module: the files of its examples and test data, and the raw
// string literals of its Go tests that are whole scripts. Prints a Case as JSON for each, one a line.
package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Case is a script with what it needs to run.
type Case struct {
	// Where it stands: a path within the module, for literals with the line.
	ID string `json:"id"`
	// Files of the script's folder, by path; main is one of them. Empty for files of the module, which are copied
	// with their neighbours.
	Files map[string]string `json:"files,omitempty"`
	Main  string            `json:"main"`
	// Flags of `k6 run` and variables of the environment that the test sets.
	Flags []string          `json:"flags,omitempty"`
	Env   map[string]string `json:"env,omitempty"`
	// Needs says why it cannot run without its test.
	Needs string `json:"needs,omitempty"`
}

// whole matches what only a whole script has.
var whole = regexp.MustCompile(`\bexport\s+default\b|\bexports\.default\s*=|\bmodule\.exports\b[^;]*\bdefault\b|export\s*\{[^}]*\bdefault\b`)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: collect MODULE-FOLDER")
	}
	root := os.Args[1]
	output := json.NewEncoder(os.Stdout)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		within, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, found := range collect(path, filepath.ToSlash(within)) {
			if err := output.Encode(found); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

// collect finds the scripts of one file.
func collect(path, within string) []Case {
	switch {
	case strings.HasSuffix(path, "_test.go"):
		return literals(path, within)
	case strings.HasSuffix(path, ".js"), strings.HasSuffix(path, ".ts"):
		text, err := os.ReadFile(path)
		if err == nil && (strings.HasPrefix(within, "examples/") || whole.Match(text)) {
			return []Case{{ID: within, Main: within}}
		}
	}
	return nil
}

// literals finds the scripts in the functions of a Go test.
func literals(path, within string) []Case {
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
	if err != nil {
		log.Fatal(err)
	}
	var cases []Case
	for _, declaration := range file.Decls {
		search := search{positions: positions, within: within}
		ast.Walk(visitor{search: &search}, declaration)
		cases = append(cases, search.cases()...)
	}
	return cases
}

// search gathers what one function of a test has: its scripts, and the files, flags and variables that it sets.
type search struct {
	positions *token.FileSet
	within    string
	scripts   []script
	// Files by path, as the function writes them.
	files map[string]string
	// Texts by the names of the variables that hold them.
	texts map[string]string
	flags []flags
	env   map[string]string
}

// script is a literal that is a whole script, or a map of files with one.
type script struct {
	at    token.Pos
	text  string
	files map[string]string
	needs string
	// scope is the innermost function that it stands in.
	scope ast.Node
}

// flags are the arguments of a command line, of the function that they stand in.
type flags struct {
	words []string
	scope ast.Node
}

// visitor knows the nodes around the one that it visits.
type visitor struct {
	search  *search
	parents []ast.Node
}

func (v visitor) Visit(node ast.Node) ast.Visitor {
	if node == nil {
		return nil
	}
	inner := visitor{v.search, append(append([]ast.Node{}, v.parents...), node)}
	switch node := node.(type) {
	case *ast.BasicLit:
		v.literal(node)
	case *ast.CompositeLit:
		if files, ok := filesOf(node); ok {
			v.search.add(script{at: node.Pos(), files: files, scope: v.scope()})
			return nil
		}
		if words, ok := words(node); ok && len(words) > 0 {
			v.search.flags = append(v.search.flags, flags{words, v.scope()})
		}
	case *ast.AssignStmt:
		v.assignment(node)
	case *ast.CallExpr:
		v.search.written(node)
	}
	return inner
}

// literal looks at a string: it is a script, part of one, or something else.
func (v visitor) literal(node *ast.BasicLit) {
	text, ok := text(node)
	if !ok || !strings.HasPrefix(node.Value, "`") || !whole.MatchString(text) {
		return
	}
	found := script{at: node.Pos(), text: text, scope: v.scope()}
	for i := len(v.parents) - 1; i >= 0; i-- {
		switch parent := v.parents[i].(type) {
		case *ast.BinaryExpr:
			found.needs = "joined by its test from several texts"
		case *ast.CallExpr:
			if isFormat(parent) && strings.Contains(text, "%") {
				found.needs = "completed by its test (fmt.Sprintf)"
			}
			if name(parent.Fun) == "WriteFile" {
				// It is among the files of the function; see cases.
				return
			}
			continue
		case *ast.ParenExpr, *ast.ArrayType:
			continue
		}
		if found.needs == "" {
			break
		}
	}
	v.search.add(found)
}

// assignment remembers texts by name, command lines, and variables of the environment.
func (v visitor) assignment(node *ast.AssignStmt) {
	for i, left := range node.Lhs {
		if i >= len(node.Rhs) {
			return
		}
		switch left := left.(type) {
		case *ast.Ident:
			if text, ok := v.search.textOf(node.Rhs[i]); ok {
				set(&v.search.texts, left.Name, text)
			}
		case *ast.IndexExpr:
			key, isText := text(left.Index)
			value, hasText := v.search.textOf(node.Rhs[i])
			if isText && hasText && name(left.X) == "Env" {
				set(&v.search.env, key, value)
			}
		}
	}
}

// scope is the innermost function around the visited node.
func (v visitor) scope() ast.Node {
	for i := len(v.parents) - 1; i >= 0; i-- {
		switch v.parents[i].(type) {
		case *ast.FuncLit, *ast.FuncDecl:
			return v.parents[i]
		}
	}
	return nil
}

func (s *search) add(found script) { s.scripts = append(s.scripts, found) }

// written remembers a file that the function writes.
func (s *search) written(call *ast.CallExpr) {
	if name(call.Fun) != "WriteFile" || len(call.Args) < 3 {
		return
	}
	path, hasPath := s.path(call.Args[1])
	content, hasContent := s.textOf(call.Args[2])
	if hasPath && hasContent {
		set(&s.files, path, content)
	}
}

// path is what an expression says of a path: a text, or one below the working directory.
func (s *search) path(expression ast.Expr) (string, bool) {
	if path, ok := s.textOf(expression); ok {
		return path, true
	}
	call, ok := expression.(*ast.CallExpr)
	if !ok || name(call.Fun) != "Join" || len(call.Args) < 2 {
		return "", false
	}
	var parts []string
	for i, argument := range call.Args {
		part, ok := text(argument)
		if !ok && i > 0 {
			return "", false
		}
		parts = append(parts, part)
	}
	return filepath.ToSlash(filepath.Join(parts...)), true
}

// textOf is the text of a literal, of a variable that holds one, or of either in a conversion or a replacement.
func (s *search) textOf(expression ast.Expr) (string, bool) {
	switch expression := expression.(type) {
	case *ast.Ident:
		text, ok := s.texts[expression.Name]
		return text, ok
	case *ast.CallExpr:
		_, isConversion := expression.Fun.(*ast.ArrayType)
		if len(expression.Args) == 1 && (isConversion || name(expression.Fun) == "Replace") {
			return s.textOf(expression.Args[0])
		}
	}
	return text(expression)
}

// cases makes the scripts that were found complete.
func (s *search) cases() []Case {
	var cases []Case
	for _, script := range s.scripts {
		made := Case{ID: s.id(script.at), Main: "script.js", Env: s.env, Needs: script.needs}
		made.Files = map[string]string{}
		for path, text := range s.files {
			made.Files[path] = text
		}
		line := s.commandLine(script.scope)
		if len(line) > 0 {
			made.Flags = line[:len(line)-1]
		}
		if script.files != nil {
			made.Files = script.files
			if made.Main = entry(script.files); made.Main == "" {
				made.Needs = "several files, of which its test chooses one"
			}
		} else if path, ok := pathOf(s.files, script.text); !ok {
			made.Files[made.Main] = script.text
		} else if made.Main = path; !isNamed(path, line, len(s.scripts)) {
			// A module of another script.
			continue
		}
		cases = append(cases, made)
	}
	return cases
}

// commandLine is the one of `k6 run` in a function, or in the ones around it, from behind `run` to the script.
func (s *search) commandLine(scope ast.Node) []string {
	for _, flags := range s.flags {
		within := scope != nil && flags.scope != nil && flags.scope.Pos() <= scope.Pos() && scope.End() <= flags.scope.End()
		for i, word := range flags.words {
			if word == "run" && within {
				return append(append([]string{}, flags.words[1:i]...), flags.words[i+1:]...)
			}
		}
		if within && strings.HasPrefix(flags.words[0], "-") {
			return append(append([]string{}, flags.words...), "-")
		}
	}
	return nil
}

func (s *search) id(at token.Pos) string {
	position := s.positions.Position(at)
	return strings.Join([]string{s.within, strconv.Itoa(position.Line)}, ":")
}

// pathOf is the path under which a text is written.
func pathOf(files map[string]string, text string) (string, bool) {
	for path, content := range files {
		if content == text {
			return path, true
		}
	}
	return "", false
}

// isNamed says whether a command line runs the file, or nothing else could be run.
func isNamed(path string, line []string, scripts int) bool {
	if len(line) == 0 {
		return scripts == 1
	}
	return strings.HasSuffix(path, strings.TrimPrefix(line[len(line)-1], "./"))
}

// entry is the file of several that its test runs: the one that lies deepest.
func entry(files map[string]string) string {
	found := ""
	for path := range files {
		isScript := strings.HasSuffix(path, "/script.js") || strings.HasSuffix(path, "/main.js")
		if isScript && (len(path) > len(found) || len(path) == len(found) && path < found) {
			found = path
		}
	}
	return found
}

// filesOf reads a map from paths to contents, one of which is a whole script.
func filesOf(node *ast.CompositeLit) (map[string]string, bool) {
	if _, ok := node.Type.(*ast.MapType); !ok {
		return nil, false
	}
	files, scripts := map[string]string{}, 0
	for _, element := range node.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return nil, false
		}
		path, isText := text(pair.Key)
		content, hasText := text(pair.Value)
		if !isText || !hasText || !strings.HasPrefix(path, "/") {
			return nil, false
		}
		if files[path] = content; whole.MatchString(content) {
			scripts++
		}
	}
	return files, scripts > 0
}

// words reads a list of nothing but texts.
func words(node *ast.CompositeLit) ([]string, bool) {
	list, ok := node.Type.(*ast.ArrayType)
	if !ok || name(list.Elt) != "string" {
		return nil, false
	}
	var words []string
	for _, element := range node.Elts {
		word, ok := text(element)
		if !ok && name(element) != "BinaryName" {
			return nil, false
		}
		words = append(words, word)
	}
	return words, true
}

func isFormat(call *ast.CallExpr) bool {
	return strings.HasSuffix(name(call.Fun), "f")
}

// name is the last part of a name: `WriteFile` of `fsext.WriteFile`.
func name(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.Ident:
		return expression.Name
	case *ast.SelectorExpr:
		return expression.Sel.Name
	}
	return ""
}

// text is what a literal says.
func text(expression ast.Expr) (string, bool) {
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

func set(texts *map[string]string, key, value string) {
	if *texts == nil {
		*texts = map[string]string{}
	}
	(*texts)[key] = value
}
