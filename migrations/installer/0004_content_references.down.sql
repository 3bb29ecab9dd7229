drop view installer_api.content_references;
