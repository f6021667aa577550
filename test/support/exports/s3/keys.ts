/** The access keys that the servers know, by id. A session's has a token and an end. */
export type AccessKey = {
  secretAccessKey: string;
  sessionToken?: string;
  /** Milliseconds of the epoch. */
  expiresAt?: number;
};

/** Shared by STS, which adds sessions, and S3, which honours them. */
export type AccessKeys = Map<string, AccessKey>;
