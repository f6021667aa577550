/**
 * The addresses of a started process; a worker has only `opsUrl`. `projectId` is the first project of `attest up`,
 * `newLogDomain` the log domain that this start generated.
 */
export type Ready = {
  readonly baseUrl?: string;
  readonly verifyUrl?: string;
  readonly opsUrl: string;
  /** Set where the admin API has a listener of its own. */
  readonly adminUrl?: string;
  /** Set where there is a dashboard. */
  readonly dashboardUrl?: string;
  readonly projectId?: string;
  readonly newLogDomain?: string;
};

/** The addresses of an API process without an ops listener of its own. */
export type ApiAddresses = Omit<Ready, 'opsUrl'>;
