drop index gateway.installplans_name;
