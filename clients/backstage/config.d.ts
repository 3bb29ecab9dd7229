export interface Config {
  chandler?: {
    /** Address of Chandler, such as https://chandler.example.com. */
    baseUrl: string;
    /** Address of Chandler as browsers reach it, for links to its pages; by default baseUrl. */
    publicUrl?: string;
    /**
     * Token of the portal: it reads, and subscribes for those who bring no token of their own.
     * @visibility secret
     */
    token: string;
    /** Owner of what names none; by default group:default/platform. */
    owner?: string;
    /** Label of subscriptions and clusters that names the group that owns them; by default team. */
    ownerLabel?: string;
    /** How often the software catalog is brought up to date, as Backstage's schedules have it; by default every 5 minutes. */
    schedule?: object;
  };
}
