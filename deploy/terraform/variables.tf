variable "project" {
  type        = string
  description = "The project of Google Cloud."
}

variable "region" {
  type    = string
  default = "europe-west3"
}

variable "name" {
  type    = string
  default = "attest"
}

variable "host" {
  type        = string
  description = "The public host name, such as attest.example.com."
}

variable "log_domain" {
  type        = string
  description = "Of the logs' origins, for ever: a host name that no other installation uses."
}

variable "image" {
  type        = string
  description = "The image of the service, without a tag."
}

variable "image_digest" {
  type        = string
  description = "sha256:... of that image."
}

variable "database_tier" {
  type    = string
  default = "db-custom-4-16384"
}

variable "nats_chart_version" {
  type    = string
  default = "1.2.11"
}

variable "witnesses" {
  type        = any
  default     = []
  description = "As WITNESSES has them: docs/witnesses.md."
}

variable "witness_files" {
  type        = map(string)
  default     = {}
  description = "What chain_file of a witness names."
}
