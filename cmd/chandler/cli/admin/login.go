package admin

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/cmd/chandler/signin"
	"github.com/chandler-fleet/chandler/libs/reach"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// LoginCommand signs somebody in at the identity provider of the house.
func LoginCommand(a *command.Env) *cobra.Command {
	var provider, issuer string
	var device, noBrowser bool
	c := &cobra.Command{
		Use: "login", Short: "Sign in at your identity provider", Args: cobra.NoArgs,
		Long: `Signs you in at the identity provider that this Chandler takes tokens of, in your browser, or with --device in
one on any machine. The token is kept for you alone in ~/.config/chandler/credentials.yaml, for this address of
Chandler, and replaced before it ends, if the provider allows that. A token by --token, CHANDLER_TOKEN or the settings
goes before it.

Which provider that is, Chandler says, and it gets the token: at the first sign-in for an address, and when the provider
or its client has changed, you are asked whether that is right. Where nobody can be asked, --issuer names it.`,
		Example: `  chandler login
  chandler login --issuer https://login.example.org
  chandler login --device`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.Settings()
			if err != nil {
				return err
			}
			if err := reach.SafeURL(s.URL); err != nil {
				return command.Usagef("whoever sits between could take your token: the address of Chandler %w", err)
			}
			asker, err := client.NewWith(s.URL, "", s.Certificates)
			if err != nil {
				return command.Usagef("%w", err)
			}
			known, err := asker.AuthConfig(cmd.Context())
			if err != nil {
				return err
			}
			with, err := chosen(known.Providers, provider)
			if err != nil {
				return err
			}
			if err := agree(a, s.URL, with, issuer); err != nil {
				return err
			}
			l := signin.Login{With: with, Now: a.Now, Show: func(address, code string) error {
				return show(cmd.Context(), a, address, code, !noBrowser && !device)
			}}
			get := l.Browser
			if device {
				get = l.Device
			}
			credential, err := get(cmd.Context())
			if err != nil {
				return err
			}
			return keep(cmd.Context(), a, s, credential)
		},
	}
	c.Flags().StringVar(&provider, "provider", "", "name of the identity provider, where there are several")
	c.Flags().StringVar(&issuer, "issuer", "", "the identity provider that you agree to sign in at, by its address")
	c.Flags().BoolVar(&device, "device", false, "show a code to type into a browser on another machine")
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "show the address, and open no browser")
	return c
}

// agree has the person say that they sign in at this provider for this Chandler: it is Chandler that names the provider
// and then gets the token, so that somebody who answers in its place could want one that is good elsewhere.
func agree(a *command.Env, url string, with model.LoginProvider, issuer string) error {
	if err := reach.SafeURL(with.Issuer); err != nil {
		return fmt.Errorf("the identity provider %s: %w", with.Name, err)
	}
	wanted := signin.Agreed{Issuer: with.Issuer, ClientID: with.ClientID}
	place := fmt.Sprintf("%s (client %q)", wanted.Issuer, wanted.ClientID)
	before, found, err := a.Credentials().Agreed(url)
	switch {
	case err != nil:
		return err
	case issuer != "" && issuer != wanted.Issuer:
		return command.Refused(fmt.Errorf("%s wants you to sign in at %s, and not at %s", url, place, issuer))
	case issuer == "" && found && before == wanted:
		return nil
	case issuer == "":
		inTheWay := "nobody on this machine has agreed yet to sign in at " + place + " for " + url
		if found {
			inTheWay = fmt.Sprintf("you have signed in at %s (client %q) for %s until now, and it wants %s",
				before.Issuer, before.ClientID, url, place)
		}
		question := "Sign in at " + place + " for Chandler at " + url + "?"
		if err := a.Confirm(plain.Text(question), plain.Text(inTheWay), "--issuer "+wanted.Issuer); err != nil {
			return err
		}
	}
	return a.Credentials().Agree(url, wanted)
}

// keep keeps a credential that Chandler takes.
func keep(ctx context.Context, a *command.Env, s command.Settings, credential signin.Credential) error {
	url := s.URL
	c, err := client.NewWith(url, credential.Token, s.Certificates)
	if err != nil {
		return command.Usagef("%w", err)
	}
	me, err := c.WhoAmI(ctx)
	if err != nil {
		return err
	}
	if err := a.Credentials().Put(url, &credential); err != nil {
		return err
	}
	return a.Say("signed in at %s as %s", credential.Provider, me.Actor)
}

func chosen(list []model.LoginProvider, name string) (model.LoginProvider, error) {
	var names []string
	for _, p := range list {
		if p.Name == name || name == "" && len(list) == 1 {
			return p, nil
		}
		names = append(names, p.Name)
	}
	if len(list) == 0 {
		return model.LoginProvider{}, command.Usagef("this Chandler signs nobody in: use a token (chandler token add)")
	}
	return model.LoginProvider{}, command.Usagef("choose an identity provider: --provider %s",
		strings.Join(names, ", or --provider "))
}

// show tells where to sign in, on standard error: what comes of it is the result.
func show(ctx context.Context, a *command.Env, address, code string, open bool) error {
	text := "To sign in, open " + address
	if code != "" {
		text += "\nand type the code " + code
	}
	if _, err := fmt.Fprintln(a.Err, plain.Text(text)); err != nil || !open {
		return err
	}
	program, args := browser(a)
	if program == "" {
		return nil
	}
	// Where there is none, the person opens the address.
	_ = exec.CommandContext(ctx, program, append(args, address)...).Start()
	return nil
}

func browser(a *command.Env) (program string, args []string) {
	if own, ok := a.Env("BROWSER"); ok && own != "" {
		return own, nil
	}
	switch runtime.GOOS {
	case "darwin":
		return "open", nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	default:
		return "xdg-open", nil
	}
}

// LogoutCommand forgets a sign-in.
func LogoutCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Forget your sign-in on this machine", Args: cobra.NoArgs,
		Long: `Removes the token of chandler login for this address of Chandler.

The provider's own session, and a copy of the token that somebody else has, end by themselves.`,
		Example: "  chandler logout",
		RunE: func(*cobra.Command, []string) error {
			s, err := a.Settings()
			if err != nil {
				return err
			}
			if err := a.Credentials().Put(s.URL, nil); err != nil {
				return err
			}
			return a.Say("signed out of %s", s.URL)
		},
	}
}
