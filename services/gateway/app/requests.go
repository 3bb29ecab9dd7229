package app

import (
	"context"
	"net/url"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/service/platform"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view"
)

// openRequests opens the pool that requests are answered with. Its sessions have no tenant but in TenantTx, and their
// role cannot have that of all tenants. A gateway that was not told of the role goes on with its own, and says so: the
// role can be given to a release that runs.
func openRequests(
	ctx context.Context, p *platform.Platform, cfg Config, models []projection.Projection,
) (*pg.Pool, error) {
	given, setting, err := cfg.requestsURL()
	if err != nil {
		return nil, err
	}
	pool, err := pg.Open(ctx, given, pg.WithLog(p.Telemetry.Log), pg.WithName("gateway requests"),
		pg.WithMaxConns(pg.RequestConns), pg.WithSearchPath(view.Places(models)...), pg.WithSetting(setting),
		pg.WithoutTenant())
	if err != nil {
		return nil, err
	}
	if err := checkRequests(ctx, p, pool, setting); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// checkRequests refuses a pool of another database than the platform's, and warns of a role that may be all tenants.
func checkRequests(ctx context.Context, p *platform.Platform, pool *pg.Pool, setting string) error {
	here, err := p.Log.Installation(ctx)
	if err != nil {
		return err
	}
	there, err := eventlog.New(pool).Installation(ctx)
	if err != nil {
		return err
	}
	if here.ID != there.ID {
		return errs.New(errs.Invalid, "%s names another database than CHANDLER_DATABASE_URL: that of installation %s "+
			"instead of %s", setting, there.ID, here.ID).At("requests-database-url", "")
	}
	var role string
	if err := pool.QueryRow(ctx, `select session_user`).Scan(&role); err != nil {
		return pg.Err(err)
	}
	if role != migrate.GatewayRequests {
		p.Telemetry.Log.WarnContext(ctx, "requests are answered with a role that may set the tenant of all",
			"role", role, "want", migrate.GatewayRequests,
			"give", service.Env("requests-database-url")+" or "+service.Env("gateway-api-password"))
	}
	return nil
}

// requestsURL is the URL of the database with the role of requests, and the setting that it is from.
func (c *Config) requestsURL() (given, setting string, err error) {
	switch {
	case c.Requests.URL != "":
		return c.Requests.URL, service.Env("requests-database-url"), nil
	case c.Requests.Password == "":
		return c.DatabaseURL, service.Env("database-url"), nil
	}
	u, err := url.Parse(c.DatabaseURL)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") { // whose text holds the URL, password and all
		return "", "", errs.New(errs.Invalid, "%s goes with a %s of the form postgres://…; give %s instead",
			service.Env("gateway-api-password"), service.Env("database-url"), service.Env("requests-database-url")).
			At("gateway-api-password", "")
	}
	u.User = url.UserPassword(migrate.GatewayRequests, c.Requests.Password)
	q := u.Query()
	q.Del("user") // these would win over the role and password of the URL
	q.Del("password")
	u.RawQuery = q.Encode()
	return u.String(), service.Env("gateway-api-password"), nil
}
