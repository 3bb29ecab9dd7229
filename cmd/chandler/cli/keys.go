package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
)

func (a *app) keysCommand() *cobra.Command {
	var secret string
	c := &cobra.Command{
		Use:   "keys",
		Short: "Make the secrets of a new installation",
		Long: `Writes new secrets: the administrator's token, the key pair that protects kubeconfigs, the key that
signs grants, and the passwords of database and bus. Without a flag as an environment file, which
docker compose reads as .env; with --secret as a Secret of Kubernetes, which the chart refers to.

The chart's Secret needs one more key, CHANDLER_ADMIN_DATABASE_URL: the database of the migration.`,
		Example: `  chandler keys > .env
  chandler keys --secret chandler | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.makeKeys(secret) },
	}
	c.Flags().StringVar(&secret, "secret", "", "write a Secret of this name")
	return c
}

func (a *app) makeKeys(secret string) error {
	k, err := keys.Make()
	if err != nil {
		return err
	}
	if secret == "" {
		for _, v := range k.Variables() {
			if err := a.say("%s=%s", v.Name, v.Value); err != nil {
				return err
			}
		}
		return nil
	}
	s := corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, StringData: map[string]string{}}
	s.Name = secret
	for _, v := range k.Variables() {
		s.StringData[v.Name] = v.Value
	}
	raw, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Out, string(raw))
	return err
}
