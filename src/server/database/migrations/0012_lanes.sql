-- Several logs of an environment beside each other. Processes of the version before know the first lane only.

-- One log per environment, lane and epoch; only the newest epoch of a lane is written.
ALTER TABLE log ADD COLUMN lane smallint NOT NULL DEFAULT 1 CHECK (lane > 0);
ALTER TABLE log DROP CONSTRAINT log_environment_epoch_key, ADD UNIQUE (environment, lane, epoch);

-- The lane that a project's submissions go to, never changed; without a row the first.
CREATE TABLE project_lane (
  project_id text COLLATE "C" NOT NULL REFERENCES project,
  environment smallint NOT NULL,
  lane smallint NOT NULL CHECK (lane > 0),
  PRIMARY KEY (project_id, environment)
);
CREATE INDEX project_lane_by_lane ON project_lane (environment, lane);
