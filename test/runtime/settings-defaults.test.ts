import test from 'ava'
import { loadSettings } from '../../runtime/configuration/load-settings.js'
import type { Settings } from '../../runtime/configuration/settings.js'

function settingsWithoutAnything(): Settings {
  const result = loadSettings({ environment: {}, cwd: '/nowhere' })
  if (result.tag === 'refused') throw new Error(JSON.stringify(result.failures))
  return result.settings
}

// The defaults and limits that docs/reference/configuration.md documents.
const defaults: Record<string, Record<string, unknown>> = {
  server: {
    host: '127.0.0.1',
    port: 8080,
    egress_port: undefined,
    transport: 'plain_http',
    base_domain: 'localhost',
    identity_app_origin: '',
    dashboard_app_origin: '',
    cors_allowed_origins: [],
    allowed_hosts: [],
    trusted_proxies: [],
    direct_client_exposure: false,
    metrics_bearer_token: undefined,
    endpoint_throttle: { enabled: true },
    request_timeout_secs: 30,
    shutdown_deadline_secs: 30,
    tls: undefined,
    egress_url: 'http://localhost:8080',
    errors_base_url: 'http://localhost:8080',
  },
  deployment: {
    allow_all_in_one_runtime_plane: true,
    background_tasks_enabled: true,
    embedded_chain_monitor: false,
    coordination_backend: 'postgres',
    database_topology: 'shared',
  },
  redis: {
    mode: 'single',
    url: undefined,
    nodes: [],
    master_name: 'mymaster',
    username: undefined,
    password: undefined,
    sentinel_username: undefined,
    sentinel_password: undefined,
    tls: false,
    pool_size: 10,
    connect_timeout_secs: 2,
    command_timeout_secs: 2,
  },
  memcached: {
    address: undefined,
    pool_size: 10,
    max_idle: 10,
    connect_timeout_secs: 2,
    command_timeout_secs: 2,
  },
  database: {
    url: undefined,
    max_connections: 20,
    min_connections: 2,
    identity_max_connections: 10,
    connect_timeout_secs: 5,
    idle_timeout_secs: 600,
    max_lifetime_secs: 1800,
    statement_cache_capacity: 100,
    prepared_statements: 'named',
    announce: 'notify',
    test_before_acquire: true,
    statement_timeout_secs: 10,
    background_statement_timeout_secs: 60,
    idle_in_transaction_timeout_secs: 30,
    maintenance_statement_timeout_secs: 600,
    require_ssl: false,
  },
  security: { production: false, webhook_allow_non_standard_ports: false },
  jwt: {
    default_algorithm: 'ES256',
    access_token_lifetime_human_secs: 900,
    access_token_lifetime_agent_secs: 300,
    refresh_token_lifetime_human_secs: 604_800,
    refresh_token_lifetime_agent_secs: 86_400,
    id_token_lifetime_secs: 300,
    key_rotation_days: 30,
  },
  auth: {
    argon2_memory_kib: 65_536,
    argon2_iterations: 3,
    argon2_parallelism: 1,
    argon2_max_concurrent: 4,
    brute_force_max_attempts: 10,
    brute_force_lockout_secs: 900,
    password_verify_ip_max_attempts: 60,
    password_verify_ip_window_secs: 60,
    registration_rate_limit_max: 10,
    registration_rate_limit_window_secs: 60,
  },
  challenge: {
    captcha_enabled: false,
    captcha_secret: undefined,
    fail_mode: 'fail-closed',
    hibp_enabled: false,
    pow_difficulty_bits: 20,
    pow_trickle_per_minute: 120,
    pow_flood_bits_max: 4,
    pow_min_duration_secs: 2,
    pow_ttl_secs: 300,
    pow_max_invalid: 10,
    agent_challenge_ttl_secs: 120,
  },
  device_authorization: {
    ttl_secs: 900,
    interval_secs: 5,
    delegation_ttl_secs: 604_800,
    approval_max_auth_age_secs: 300,
  },
  oidc: {
    issuer_url: 'http://localhost:8080',
    par_ttl_secs: 90,
    code_ttl_secs: 60,
    dynamic_registration_enabled: false,
    registration_initial_access_token_required: true,
  },
  dpop: { enabled: true, require_nonce: false, proof_max_age_secs: 300 },
  credentials: {
    enabled: true,
    offer_ttl_secs: 300,
    nonce_ttl_secs: 300,
    lifetime_secs: 2_592_000,
  },
  vault: {
    egress_buffered_response_max_bytes: 10_485_760,
    egress_body_max_bytes: 33_554_432,
    egress_json_max_bytes: 8_388_608,
    egress_idle_gap_secs: 90,
    egress_hop_timeout_secs: 300,
    egress_allow_non_standard_ports: false,
    egress_allow_private_networks: false,
    ssh_default_validity_secs: 300,
    ssh_max_validity_secs: 3600,
    max_credentials_per_tenant: 0,
  },
  webhooks: {
    max_age_secs: 300,
    timeout_secs: 15,
    retry_schedule_secs: [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400],
    max_subscriptions_per_tenant: 50,
    delivery_retention_days: 30,
    allow_private_networks: false,
  },
  commerce: {
    enabled: false,
    checkout_ttl_secs: 86_400,
    checkout_retention_days: 90,
    redirect_hosts: [],
    card: {
      provider: 'none',
      api_base_url: 'https://api.stripe.com',
      checkout_hosts: ['checkout.stripe.com'],
      timeout_secs: 10,
      clearing_days: 7,
      secret_key: undefined,
      webhook_secret: undefined,
    },
    x402_enabled: false,
    x402_v1_compat: false,
    x402_facilitator_url: undefined,
    x402_max_timeout_secs: 60,
  },
  openapi: { enabled: true, exposure: 'internal', docs_path: '/api/docs' },
  tenant: { default_tenant_slug: undefined },
  scim: { enabled: false, groups_enabled: false, max_results: 200 },
  tenant_assets: { enabled: false },
  email: { provider: 'log', smtp_port: 587, smtp_starttls: true },
  phone: { provider: 'none' },
}

for (const [name, values] of Object.entries(defaults)) {
  test(`[${name}] has its defaults`, (t) => {
    const section = settingsWithoutAnything()[name as keyof Settings] as unknown as Record<
      string,
      unknown
    >
    for (const [key, value] of Object.entries(values)) t.deepEqual(section[key], value, key)
  })
}

test('without [kms] there is no kms, and without [[chains]] the list is empty', (t) => {
  t.is(settingsWithoutAnything().kms, undefined)
  t.deepEqual(settingsWithoutAnything().chains, [])
})
