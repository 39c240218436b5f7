/**
 * Settings of the services that test files share: `sharedService('plain')`. Several files use one at the same time, on one
 * database. Tenants isolate them, so a file makes its own tenants, and its own addresses with `mailbox()`.
 */
import { fileURLToPath } from 'node:url'
import type { ChainOptions } from '../commerce/market.js'
import { UPSTREAM_CERT_PATH } from '../../actors/vault/egress/loopback-tls.js'
import { REACHES_LOOPBACK } from './loopback.js'
import { REACHES_RECEIVERS } from '../webhooks/receiver.js'
import { THROUGH } from './through.js'

/** The files share an address too. Tests of these limits have their own service. */
const LIMITS = {
  SVC_AUTH__PASSWORD_VERIFY_IP_MAX_ATTEMPTS: '10000',
  SVC_CHALLENGE__POW_TRICKLE_PER_MINUTE: '1000000',
  SVC_DATABASE__MAX_CONNECTIONS: '12',
}

/** Requests say the address of their client. Behind nginx that one says it (`notBehindNginx()`). */
const BEHIND_PROXY = THROUGH !== 'nginx' ? { SVC_SERVER__TRUSTED_PROXIES: '127.0.0.1' } : {}

/** Lifetimes of browser sessions in the profile `people`. */
export const SESSION = { idleSecs: 1_800, absoluteSecs: 7_200 } as const

const PEOPLE = {
  ...LIMITS,
  SVC_USER_SELF_SERVICE__ENABLED: 'true',
  SVC_INVITATIONS__ENABLED: 'true',
  // Organizations without a plan have every feature.
  SVC_BILLING__ENABLED: 'true',
  SVC_API_KEYS__ENABLED: 'true',
  SVC_API_KEYS__MAX_PER_TENANT: '6',
  SVC_EMAIL_OTP__ENABLED: 'true',
  SVC_MAGIC_LINK__ENABLED: 'true',
  SVC_PASSKEY__ENABLED: 'true',
  SVC_SESSION_COOKIE__IDLE_SECS: String(SESSION.idleSecs),
  SVC_SESSION_COOKIE__ABSOLUTE_SECS: String(SESSION.absoluteSecs),
  SVC_SIWE__ENABLED: 'true',
  SVC_SIWE__CHAIN_IDS: '[1, 8453]',
  // Without a provider nothing of it is offered.
  SVC_PHONE__ENABLED: 'true',
  SVC_AUTH__BRUTE_FORCE_MAX_ATTEMPTS: '1000',
  SVC_ANONYMOUS__ENABLED: 'true',
  SVC_ANONYMOUS__REQUESTS_PER_ADDRESS_MAX: '100000',
  SVC_EMAIL__REQUESTS_PER_ADDRESS_MAX: '100000',
}

/** With these settings a service reaches the upstreams of all tests: their names, any port of loopback, their certificate. */
export const REACHES_UPSTREAMS = {
  SVC_CONFIG_FILE: fileURLToPath(
    new URL('../../../../test/support/vault/upstream.toml', import.meta.url),
  ),
  SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
  SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
  SVC_VAULT__EGRESS_CA_PEM_PATH: UPSTREAM_CERT_PATH,
} as const

/** Settings of services whose tests call upstreams. */
export const CALLS_UPSTREAMS = {
  ...REACHES_UPSTREAMS,
  // The tests of a file share one token, so it must outlive them.
  SVC_JWT__ACCESS_TOKEN_LIFETIME_AGENT_SECS: '3600',
} as const

/** Limits of the profile `egress` that tests reach. */
export const EGRESS_LIMITS = {
  /** More than the kernel buffers of an unread connection. */
  responseBytes: 24 * 1024 * 1024,
  /** Room for two responses. */
  tenantBytes: 48 * 1024 * 1024 + 1_000_000,
} as const

/** The quota of one address in the profile `strict`: more than its files need together. */
export const REGISTRATIONS = { max: 40, windowSecs: 45 } as const

/** The slug of the default tenant of the profile `single`. */
export const ONLY_SLUG = 'harbour'

/** The app origins of the profile `mcp`. */
export const APP_ORIGINS = {
  dashboard: 'https://dashboard.example',
  identity: 'https://identity.example',
} as const

const ON_CHAIN = {
  ...LIMITS,
  SVC_DATABASE__MAX_CONNECTIONS: '20',
  // The time limits of a facilitator are parts of it: on a busy machine a settlement of the test chain takes seconds.
  SVC_SERVER__REQUEST_TIMEOUT_SECS: '60',
  SVC_COMMERCE__ENABLED: 'true',
  SVC_WALLET__ENABLED: 'true',
} as const

export const PROFILES = {
  /** The defaults of tests. */
  plain: { ...LIMITS, SVC_SERVER__SECURITY_CONTACT: 'security@svc.example' },
  /** Applications that register themselves, and devices that ask often. Guesses are not limited. */
  clients: {
    ...LIMITS,
    SVC_OIDC__DYNAMIC_REGISTRATION_ENABLED: 'true',
    SVC_DEVICE_AUTHORIZATION__INTERVAL_SECS: '1',
    SVC_AUTH__BRUTE_FORCE_MAX_ATTEMPTS: '1000',
  },
  /** Tenants have hosts. Applications register themselves there, and all documents that they name are on loopback. */
  hosts: {
    ...LIMITS,
    ...REACHES_LOOPBACK,
    ...BEHIND_PROXY,
    SVC_SERVER__BASE_DOMAIN: 'svc.example',
    SVC_OIDC__DYNAMIC_REGISTRATION_ENABLED: 'true',
    SVC_OIDC__REGISTRATION_INITIAL_ACCESS_TOKEN_REQUIRED: 'false',
    SVC_LOGOUT__RETRY_SCHEDULE_SECS: '[0, 1, 1]',
    SVC_SHARED_SIGNALS__RETRY_SCHEDULE_SECS: '[0, 1, 1]',
  },
  /** Directories, single sign-on and rules of larger tenants. */
  enterprise: {
    ...LIMITS,
    SVC_SCIM__ENABLED: 'true',
    SVC_SCIM__GROUPS_ENABLED: 'true',
    SVC_INVITATIONS__ENABLED: 'true',
    SVC_ENTERPRISE_SSO__ENABLED: 'true',
    ...BEHIND_PROXY,
    SVC_ACCESS_CONTROL__ENABLED: 'true',
    SVC_ACCESS_CONTROL__MAX_POLICIES_PER_TENANT: '3',
    SVC_VERIFIED_DOMAINS__ENABLED: 'true',
    SVC_API_KEYS__ENABLED: 'true',
    SVC_EMAIL_OTP__ENABLED: 'true',
    SVC_EMAIL__REQUESTS_PER_ADDRESS_MAX: '100000',
    SVC_USER_SELF_SERVICE__ENABLED: 'true',
    SVC_USER_SELF_SERVICE__SIGN_UP_DEFAULT: 'false',
  },
  /** Ways in: people sign up, sign in by mail, passkey and wallet, and guests stay. Guesses are not limited. */
  people: PEOPLE,
  /** Calls to upstreams on loopback (support/vault/egress.ts), webhooks to receivers there, and sales. */
  egress: {
    ...LIMITS,
    SVC_COMMERCE__ENABLED: 'true',
    ...CALLS_UPSTREAMS,
    ...REACHES_RECEIVERS,
    SVC_WEBHOOKS__RETRY_SCHEDULE_SECS: '[0, 1, 1, 1]',
    SVC_WEBHOOKS__TIMEOUT_SECS: '3',
    SVC_VAULT__EGRESS_BUFFERED_RESPONSE_MAX_BYTES: String(EGRESS_LIMITS.responseBytes),
    SVC_VAULT__EGRESS_BUFFERED_BYTES_PER_TENANT_MAX: String(EGRESS_LIMITS.tenantBytes),
  },
  /** Every sign-in has a second factor. */
  factors: { ...PEOPLE, SVC_TWO_FACTOR__ENABLED: 'true' },
  /** Delegations end soon. */
  brief: { ...LIMITS, SVC_DEVICE_AUTHORIZATION__DELEGATION_TTL_SECS: '120' },
  /** Every DPoP proof has a nonce of the service. */
  nonces: { ...LIMITS, SVC_DPOP__REQUIRE_NONCE: 'true' },
  /** Requests are limited, by the address that they say and by client. Operators and background work have nothing to do. */
  strict: {
    ...LIMITS,
    ...BEHIND_PROXY,
    SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true',
    SVC_AUTH__REGISTRATION_RATE_LIMIT_MAX: String(REGISTRATIONS.max),
    SVC_AUTH__REGISTRATION_RATE_LIMIT_WINDOW_SECS: String(REGISTRATIONS.windowSecs),
    SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false',
    SVC_ADMIN__ENABLED: 'false',
    SVC_OPENAPI__EXPOSURE: 'internal',
    SVC_SCIM__ENABLED: 'true',
    SVC_COMMERCE__ENABLED: 'true',
  },
  /** For one tenant (`onlyTenant()`), where applications register themselves, off loopback. What is on by default is off. */
  single: {
    ...LIMITS,
    SVC_SERVER__BASE_DOMAIN: 'svc.example',
    SVC_OIDC__DYNAMIC_REGISTRATION_ENABLED: 'true',
    SVC_OIDC__REGISTRATION_INITIAL_ACCESS_TOKEN_REQUIRED: 'false',
    SVC_CONSOLE__ENABLED: 'false',
    SVC_ORGANIZATIONS__ENABLED: 'false',
    SVC_CREDENTIALS__ENABLED: 'false',
    SVC_EMAIL__DEV_MAILBOX: 'false',
    SVC_TENANT__DEFAULT_TENANT_SLUG: ONLY_SLUG,
  },
  /** All of MCP, and applications at two more origins. */
  mcp: {
    ...LIMITS,
    SVC_SERVER__DASHBOARD_APP_ORIGIN: APP_ORIGINS.dashboard,
    SVC_SERVER__IDENTITY_APP_ORIGIN: APP_ORIGINS.identity,
    SVC_OPENAPI__EXPOSURE: 'public',
    SVC_COMMERCE__ENABLED: 'true',
    SVC_COMMERCE__X402_ENABLED: 'true',
    SVC_COMMERCE__X402_FACILITATOR_URL: 'https://facilitator.example',
  },
  /** What people and applications get is over within seconds. Guesses are limited. */
  fleeting: {
    ...LIMITS,
    SVC_PASSKEY__ENABLED: 'true',
    SVC_OIDC__PAR_TTL_SECS: '5',
    SVC_OIDC__CODE_TTL_SECS: '1',
    SVC_SIWE__ENABLED: 'true',
    SVC_SIWE__MESSAGE_TTL_SECS: '1',
  },
  /** A proof of work takes a while. */
  patient: { ...LIMITS, SVC_CHALLENGE__POW_MIN_DURATION_SECS: '1' },
  commerce: {
    ...LIMITS,
    SVC_COMMERCE__ENABLED: 'true',
    SVC_OIDC__DYNAMIC_REGISTRATION_ENABLED: 'true',
    SVC_COMMERCE__REDIRECT_HOSTS: 'shop.example,pay.example:8443',
    SVC_SERVER__TRUSTED_PROXIES: '127.0.0.1/32',
  },
  /** Sells on the chain of the runner (commerce/market.ts), which it sees. */
  onChain: ON_CHAIN,
  /** Relies on its facilitator alone. */
  blind: ON_CHAIN,
  /** Takes version 1 of x402 too. */
  wallets: ON_CHAIN,
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>

export type Profile = keyof typeof PROFILES

/** Their services send to the mail server of the runner: `sharedMail()` shows a file what came to its addresses. */
export const WITH_MAIL: ReadonlySet<Profile> = new Set(['people', 'enterprise'])

export type ChainProfile = 'onChain' | 'blind' | 'wallets'

export const CHAINS: Readonly<Partial<Record<Profile, ChainOptions>>> = {
  onChain: {},
  blind: { rpc: false },
  wallets: { v1: true },
}

/** Profiles of `sharedPair()`. */
export type PairProfile = 'people' | 'clients' | 'egress' | 'strict' | 'wallets'
