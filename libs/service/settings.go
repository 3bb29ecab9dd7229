package service

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/renewed"
)

const (
	envPrefix  = "CHANDLER_"
	configName = "config"
)

// LookupEnv reads one variable of the environment, as os.LookupEnv does.
type LookupEnv func(name string) (string, bool)

// Settings is the set of settings that a program knows. The zero value is not usable; see NewSettings.
type Settings struct {
	program string
	list    []*setting
	byName  map[string]*setting
}

type setting struct {
	name   string
	doc    string
	def    string
	secret bool
	set    func(string) error
	from   func(file string) // takes the file of a secret; nil where nobody asks
}

// NewSettings returns an empty set for the program of this name, which stands in the help text.
func NewSettings(program string) *Settings {
	return &Settings{program: program, byName: map[string]*setting{}}
}

// Env is the name of the environment variable of a setting: CHANDLER_DATABASE_URL for database-url.
func Env(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// String adds a setting that is text.
func (s *Settings) String(p *string, name, def, doc string) {
	s.add(&setting{name: name, doc: doc, def: def, set: func(v string) error { *p = v; return nil }})
}

// Secret adds a setting that is text, that no flag carries and that CHANDLER_<NAME>_FILE may name a file of.
func (s *Settings) Secret(p *string, name, doc string) {
	s.add(&setting{name: name, doc: doc, secret: true, set: func(v string) error { *p = v; return nil }})
}

// Renewed adds a secret whose file, if CHANDLER_<NAME>_FILE names one, is read again while the program runs.
func (s *Settings) Renewed(p *renewed.Setting, name, doc string) {
	s.add(&setting{
		name: name, doc: doc, secret: true,
		set:  func(v string) error { p.Text = v; return nil },
		from: func(file string) { p.File = file },
	})
}

// Duration adds a setting such as "30s".
func (s *Settings) Duration(p *time.Duration, name string, def time.Duration, doc string) {
	s.add(&setting{name: name, doc: doc, def: def.String(), set: func(v string) error {
		d, err := time.ParseDuration(v)
		*p = d
		return err
	}})
}

// Int adds a setting that is a whole number.
func (s *Settings) Int(p *int, name string, def int, doc string) {
	s.add(&setting{name: name, doc: doc, def: strconv.Itoa(def), set: func(v string) error {
		n, err := strconv.Atoi(v)
		*p = n
		return err
	}})
}

// Bool adds a setting that is true or false.
func (s *Settings) Bool(p *bool, name string, def bool, doc string) {
	s.add(&setting{name: name, doc: doc, def: strconv.FormatBool(def), set: func(v string) error {
		b, err := strconv.ParseBool(v)
		*p = b
		return err
	}})
}

// add panics on a name that is there already: two parts of a program would read each other's value.
func (s *Settings) add(e *setting) {
	if s.byName[e.name] != nil || e.name == configName {
		panic("service: setting " + e.name + " is declared twice")
	}
	s.list = append(s.list, e)
	s.byName[e.name] = e
}

// Load fills every setting: flag before environment before file before default. It returns
// flag.ErrHelp for --help, and an errs.Invalid that names the setting and where its value came from.
func (s *Settings) Load(args []string, env LookupEnv) error {
	flags, config, err := s.parseFlags(args)
	if err != nil {
		return err
	}
	if config == "" {
		config, _ = env(Env(configName))
	}
	file, err := s.readFile(config)
	if err != nil {
		return err
	}
	for _, e := range s.list {
		if err := e.load(flags, env, file, config); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) parseFlags(args []string) (map[string]string, string, error) {
	values := map[string]string{}
	fs := flag.NewFlagSet(s.program, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	config := fs.String(configName, "", "YAML file of settings")
	for _, e := range s.list {
		if !e.secret {
			fs.Func(e.name, e.doc, func(v string) error { values[e.name] = v; return nil })
		}
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, "", err
		}
		return nil, "", errs.Wrap(errs.Invalid, err, "arguments of %s", s.program)
	}
	if fs.NArg() > 0 {
		return nil, "", errs.New(errs.Invalid, "%s takes no argument %q; settings are --name=value", s.program,
			fs.Arg(0))
	}
	return values, *config, nil
}

// readFile reads the flat YAML mapping of settings and refuses keys that nobody declared.
func (s *Settings) readFile(path string) (map[string]string, error) {
	if path == "" {
		return map[string]string{}, nil
	}
	raw, err := renewed.Read(path)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "file of settings")
	}
	values := map[string]string{}
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "file of settings %s must be a mapping of setting to value", path)
	}
	var unknown []string
	for name := range values {
		if s.byName[name] == nil {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, errs.New(errs.Invalid, "file of settings %s: unknown setting %s", path, strings.Join(unknown, ", "))
	}
	return values, nil
}

func (e *setting) load(flags map[string]string, env LookupEnv, file map[string]string, config string) error {
	value, from, err := e.find(flags, env, file, config)
	if err != nil {
		return err
	}
	if err := e.set(value); err != nil {
		return errs.Wrap(errs.Invalid, err, "setting %s (from %s)", e.name, from)
	}
	return nil
}

func (e *setting) find(flags map[string]string, env LookupEnv, file map[string]string, config string) (
	value, from string, err error,
) {
	if v, ok := flags[e.name]; ok {
		return v, "--" + e.name, nil
	}
	if v, ok := env(Env(e.name)); ok {
		return v, Env(e.name), nil
	}
	if e.secret {
		name := Env(e.name) + "_FILE"
		if path, ok := env(name); ok {
			raw, err := renewed.Read(path)
			if err != nil {
				return "", "", errs.Wrap(errs.Invalid, err, "setting %s (from %s)", e.name, name)
			}
			if e.from != nil {
				e.from(path)
			}
			return strings.TrimSpace(string(raw)), name, nil
		}
	}
	if v, ok := file[e.name]; ok {
		return v, config, nil
	}
	return e.def, "the default", nil
}

// Usage writes every setting with its variable, default and meaning, one line each.
func (s *Settings) Usage(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: settings are flags, variables or keys of a YAML file (--config, %s).\n\n", s.program,
		Env(configName))
	for _, e := range s.list {
		name := "--" + e.name
		if e.secret {
			name = "(no flag)"
		}
		fmt.Fprintf(&b, "  %-22s %-34s %s", name, Env(e.name), e.doc)
		if e.def != "" {
			fmt.Fprintf(&b, " (default %s)", e.def)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
