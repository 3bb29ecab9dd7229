package author

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
)

func (t *tool) initCommand() *cobra.Command {
	var format, channel, description, icon string
	c := &cobra.Command{
		Use:   "init PACKAGE --default-channel CHANNEL",
		Short: "Begin a package: write its olm.package",
		Long: `Writes the olm.package of a new package. Bundles come from chandler catalog render, entries of channels from
chandler catalog add-channel-entry.`,
		Example: "  chandler catalog init tidegauge --default-channel steady --description README.md --icon logo.svg " +
			"> catalog.yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := fbc.ParseFormat(format)
			if err != nil {
				return err
			}
			p := catalog.Package{Name: args[0], DefaultChannel: channel}
			if why := validation.IsDNS1123Label(p.Name); len(why) > 0 {
				return fmt.Errorf(
					"package name %q: it must have at most 63 lower-case letters, digits and '-', and begin and end "+
						"with a letter or digit (R-CAT-20)", p.Name)
			}
			if strings.TrimSpace(channel) == "" {
				return errors.New("say with --default-channel which channel a subscription follows that names none")
			}
			if description != "" {
				text, err := os.ReadFile(description)
				if err != nil {
					return err
				}
				p.Description = strings.ToValidUTF8(string(text), "\ufffd")
			}
			if icon != "" {
				if p.Icon, err = readIcon(icon); err != nil {
					return err
				}
			}
			blobs, err := fbc.FromPackage(p, nil)
			if err != nil {
				return err
			}
			return fbc.Write(t.Out, f, fbc.All(blobs))
		},
	}
	formatFlag(c, &format, fbc.YAML)
	c.Flags().StringVar(&channel, "default-channel", "", "the channel of subscriptions that name none")
	c.Flags().StringVar(&description, "description", "", "file with the description, in Markdown")
	c.Flags().StringVar(&icon, "icon", "", "file with the icon: SVG, PNG, JPEG or GIF")
	return c
}

// maxIcon is what is sensible in every answer that shows the package; the largest real icon has 400 KB.
const maxIcon = 1 << 20

// readIcon reads a picture of one of the regular types (R-CAT-41).
func readIcon(file string) (*catalog.Icon, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(data) > maxIcon {
		return nil, fmt.Errorf("icon %s has %d bytes, more than %d; make it smaller", file, len(data), maxIcon)
	}
	typ := http.DetectContentType(data)
	if bytes.Contains(data[:min(len(data), 4096)], []byte("<svg")) {
		typ = "image/svg+xml"
	}
	switch typ {
	case "image/svg+xml", "image/png", "image/jpeg", "image/gif":
		return &catalog.Icon{Data: data, MediaType: typ}, nil
	}
	return nil, fmt.Errorf("icon %s is no SVG, PNG, JPEG or GIF, but looks like %s (R-CAT-41)", file,
		strings.Split(typ, ";")[0])
}

func (t *tool) dockerfileCommand() *cobra.Command {
	var base string
	c := &cobra.Command{
		Use:   "dockerfile DIR",
		Short: "Write the recipe of an image of a catalog directory",
		Long: `Writes DIR.Dockerfile beside DIR. The image holds the catalog alone: that is all that Chandler reads, and an
OLM that extracts content. With --binary-image it also serves itself over gRPC, for any other OLM: the base
image must have the serving program of OLM at /bin/opm.`,
		Example: "  chandler catalog dockerfile ./catalog && docker build -f catalog.Dockerfile -t " +
			"registry.test/ops/catalog:v1 .",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if st, err := os.Stat(dir); err != nil || !st.IsDir() {
				return fmt.Errorf("%s is no directory", args[0])
			}
			file, err := writeDockerfile(dir, base)
			if err != nil {
				return err
			}
			t.printNote("%s is written; build it in %s", file, filepath.Dir(file))
			return nil
		},
	}
	binaryFlag(c, &base)
	return c
}

func binaryFlag(c *cobra.Command, into *string) {
	c.Flags().StringVarP(into, "binary-image", "i", "",
		"image with the serving program that the image is based on (default: none)")
}

// configsLabel names the directory of a catalog in its image (R-CAT-60).
const configsLabel = "operators.operatorframework.io.index.configs.v1"

// writeDockerfile writes the recipe for a directory beside it. One that is there is kept (R-CAT-62).
func writeDockerfile(dir, base string) (string, error) {
	name := filepath.Base(dir)
	if strings.ContainsAny(name, " \t\n\"\\$'") {
		return "", fmt.Errorf("the directory name %q cannot stand in a recipe; give it a plain name", name)
	}
	var b strings.Builder
	if base == "" {
		b.WriteString("# A catalog and nothing else: it is read, not run.\nFROM scratch\n")
	} else {
		fmt.Fprintf(&b, `# A catalog that serves itself over gRPC on port 50051.
FROM %s
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
`, base)
	}
	fmt.Fprintf(&b, "LABEL %s=/configs\nADD %s /configs\n", configsLabel, name)
	if base != "" {
		b.WriteString("RUN [\"/bin/opm\", \"serve\", \"/configs\", \"--cache-dir=/tmp/cache\", \"--cache-only\"]\n")
	}
	file := filepath.Join(filepath.Dir(dir), name+".Dockerfile")
	//nolint:gosec // everybody may read a Dockerfile
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("%s is there already; remove it to have it written anew", file)
	}
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(b.String())
	return file, errors.Join(err, f.Close())
}
