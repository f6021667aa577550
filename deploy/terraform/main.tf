# The service on Google Cloud: a regional GKE cluster, Cloud SQL for Postgres with a synchronous standby, Filestore for the
# checkpoint register, and the chart of deploy/helm. Keys and secrets are made by make-secrets.sh and are not in the state.
terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 6.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = "~> 2.17"
    }
  }
}

provider "google" {
  project = var.project
  region  = var.region
}

data "google_client_config" "this" {}

provider "helm" {
  kubernetes {
    host                   = "https://${google_container_cluster.attest.endpoint}"
    token                  = data.google_client_config.this.access_token
    cluster_ca_certificate = base64decode(google_container_cluster.attest.master_auth[0].cluster_ca_certificate)
  }
}

resource "google_compute_network" "attest" {
  name                    = var.name
  auto_create_subnetworks = false
}

resource "google_compute_subnetwork" "attest" {
  name                     = var.name
  network                  = google_compute_network.attest.id
  ip_cidr_range            = "10.10.0.0/20"
  private_ip_google_access = true
}

resource "google_compute_global_address" "services" {
  name          = "${var.name}-services"
  purpose       = "VPC_PEERING"
  address_type  = "INTERNAL"
  prefix_length = 20
  network       = google_compute_network.attest.id
}

resource "google_service_networking_connection" "services" {
  network                 = google_compute_network.attest.id
  service                 = "servicenetworking.googleapis.com"
  reserved_peering_ranges = [google_compute_global_address.services.name]
}

resource "google_container_cluster" "attest" {
  name                = var.name
  location            = var.region
  enable_autopilot    = true
  network             = google_compute_network.attest.id
  subnetwork          = google_compute_subnetwork.attest.id
  deletion_protection = true

  private_cluster_config {
    enable_private_nodes = true
  }
}

# Acknowledged submissions survive the loss of a zone: REGIONAL writes to both zones before a commit returns.
resource "google_sql_database_instance" "attest" {
  name                = var.name
  database_version    = "POSTGRES_17"
  region              = var.region
  deletion_protection = true
  depends_on          = [google_service_networking_connection.services]

  settings {
    tier              = var.database_tier
    edition           = "ENTERPRISE"
    availability_type = "REGIONAL"
    disk_type         = "PD_SSD"
    disk_autoresize   = true

    ip_configuration {
      ipv4_enabled    = false
      private_network = google_compute_network.attest.id
      ssl_mode        = "ENCRYPTED_ONLY"
    }

    backup_configuration {
      enabled                        = true
      point_in_time_recovery_enabled = true
    }
  }
}

resource "google_sql_database" "attest" {
  name     = "attest"
  instance = google_sql_database_instance.attest.name
}

# Its chart: NATS with JetStream, three servers.
resource "helm_release" "nats" {
  name       = "nats"
  repository = "https://nats-io.github.io/k8s/helm/charts/"
  chart      = "nats"
  version    = var.nats_chart_version
  values     = [file("${path.module}/../helm/examples/nats-values.yaml")]
}

resource "helm_release" "attest" {
  name       = "attest"
  chart      = "${path.module}/../helm"
  depends_on = [helm_release.nats, google_sql_database.attest]

  values = [yamlencode({
    baseUrl    = "https://${var.host}"
    logDomain  = var.log_domain
    secretName = "attest"
    image      = { repository = var.image, digest = var.image_digest }
    witnesses  = var.witnesses
    # The volume is on another disk than the database, and survives it.
    register     = { volume = { storageClassName = "standard-rwx" } }
    settings     = { NATS_REPLICAS = 3, TRUSTED_PROXIES = "130.211.0.0/22,35.191.0.0/16" }
    witnessFiles = var.witness_files
    ingress      = { enabled = true, host = var.host, tlsSecretName = "attest-tls" }
  })]
}
