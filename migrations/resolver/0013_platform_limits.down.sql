drop view resolver_api.platform_limits;
