/** Settings of the HTTP surface: [server], [admin] and [openapi]. */
import { isIP } from 'node:net'
import { z } from 'zod'
import {
  baseUrl,
  dependentTimerSeconds,
  flag,
  list,
  notes,
  optionalCount,
  origin,
  originOrNone,
  readFilePath,
  secret,
  timerSeconds,
} from '../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../runtime/kernel/config/section.js'

/** A host name or address, with or without a port. */
const host = () =>
  z
    .string()
    .regex(/^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?)(:[0-9]{1,5})?$/)
    .register(notes, { words: 'a host name, with or without a port' })

const addressOrCidr = () =>
  z
    .string()
    .refine(isAddressOrCidr)
    .register(notes, { words: 'an IP address or a CIDR such as 10.0.0.0/8' })

/** A Contact of RFC 9116 section 2.5.3: an https, mailto or tel URI. A mail address alone is a mailto URI. */
const securityContact = () =>
  z
    .string()
    .max(255)
    .regex(
      /^(?:https:\/\/[!-~]+|tel:\+?[0-9-]+|(?:mailto:)?[!-?A-~]+@[A-Za-z0-9-]+(?:[.][A-Za-z0-9-]+)*)$/,
    )
    .transform((contact) =>
      /^(?:https|tel|mailto):/.test(contact) ? contact : `mailto:${contact}`,
    )
    .register(notes, {
      words: 'an https, mailto or tel URI',
      example: 'mailto:security@example.com',
    })

const GATEWAY_THREADS_MAX = 64

export const serverSettings = section(
  'server',
  {
    host: z.string().min(1).default('127.0.0.1').describe('Address to listen on.'),
    port: z
      .int()
      .min(0)
      .max(65_535)
      .default(8080)
      .describe('Port to listen on. 0 picks a free port and requires oidc.issuer_url.'),
    egress_port: optionalCount(1, 65_535, 8081).describe(
      'Port of the egress address: a listener of the egress thread on the same host, with HTTP/1.1, over TLS unless the transport is plain_http. It serves the egress proxy and health probes only. Without it the main listener alone serves the proxy.',
    ),
    transport: z
      .enum(['plain_http', 'tls_http1', 'tls', 'tls_h2_only'])
      .default('plain_http')
      .describe(
        'plain_http is HTTP/1.1 without TLS, not in production; tls_http1 is HTTP/1.1 over TLS, for the hop from a proxy that speaks HTTP/2 to clients; tls is HTTP/2 and HTTP/1.1 over TLS; tls_h2_only is HTTP/2 over TLS only.',
      ),
    gateway_threads: z
      .union([z.literal('auto'), z.int().min(1).max(GATEWAY_THREADS_MAX)])
      .register(notes, { words: `"auto" or an integer from 1 to ${GATEWAY_THREADS_MAX}` })
      .default('auto')
      .describe(
        'Threads that accept and answer requests; auto is the processors minus one, at least 1, as far as the parser and the database pools allow (docs/guides/operations/sizing.md).',
      ),
    http1_parser: z
      .enum(['auto', 'uwebsockets', 'node'])
      .default('auto')
      .describe(
        'Parser of plain_http and tls_http1: uwebsockets is faster, node supports all of RFC 9112 (docs/concepts/gateway.md). auto is uwebsockets on loopback and for tls_http1, node otherwise and where the native file does not load.',
      ),
    tls: z
      .object({
        cert_pem_path: readFilePath('/etc/svc/tls-cert.pem').describe('Certificate chain, PEM.'),
        key_pem_path: readFilePath('/etc/svc/tls-key.pem').describe('Private key, PEM.'),
        ca_pem_path: readFilePath('/etc/svc/tls-ca.pem')
          .optional()
          .describe(
            'CA of the certificate, PEM, for `svc health`, `doctor` and `tour`. Without it the system decides.',
          ),
      })
      .optional()
      .describe('Required by tls_http1, tls and tls_h2_only.'),
    base_domain: z
      .string()
      .regex(/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/)
      .register(notes, { words: 'a domain name' })
      .default('localhost')
      .describe('Tenants are served at {slug}.{base_domain}.'),
    identity_app_origin: originOrNone()
      .default('')
      .describe('Origin of a separate identity app, whose pages may call the API from browsers.'),
    dashboard_app_origin: originOrNone()
      .default('')
      .describe('Origin of a separate dashboard, whose pages may call the API from browsers.'),
    cors_allowed_origins: list(origin())
      .default([])
      .describe(
        'Origins that browsers may call from; empty means the issuer origin only. The two app origins may always.',
      ),
    allowed_hosts: list(host())
      .default([])
      .describe('Host header values served; empty allows all, outside production only.'),
    trusted_proxies: list(addressOrCidr())
      .default([])
      .describe(
        'Addresses and CIDRs of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted.',
      ),
    direct_client_exposure: flag(false).describe('Clients connect without a proxy.'),
    metrics_bearer_token: secret(16).optional().describe('Bearer token for GET /metrics.'),
    endpoint_throttle: z.object({
      enabled: flag(true).describe(
        'false turns rate limits off for load tests; not in production.',
      ),
    }),
    request_timeout_secs: timerSeconds(30, 0).describe(
      'Time limit of a request; 0 is no limit, outside production only.',
    ),
    keep_alive_secs: z
      .int()
      .min(5)
      .max(3600)
      .default(75)
      .describe(
        'Time after which an idle connection of a client or proxy is closed: longer than the proxy keeps it. On uWebSockets it is always 10 s.',
      ),
    shutdown_deadline_secs: timerSeconds(30, 0).describe(
      'Time for requests to finish at shutdown; 0 closes immediately, outside production only.',
    ),
    drain_secs: dependentTimerSeconds().describe(
      'Time at shutdown in which readiness answers 503 and requests are still accepted, so that proxies send none any more. After it the port is closed, and for the same time again kept connections are left to their clients, which are asked to close them.',
    ),
    egress_url: baseUrl().describe(
      'Base URL of the egress proxy, which documents and clients name. The service is served at its host too, and the proxy at every host of the service.',
    ),
    errors_base_url: baseUrl().describe('Base of problem type URIs.'),
    security_contact: securityContact()
      .optional()
      .describe(
        'Where to report vulnerabilities, for /.well-known/security.txt (RFC 9116). Without it there is no such file.',
      ),
  },
  {
    about: 'The HTTP listener, hosts, proxies and limits.',
    rules: [
      {
        keys: ['transport', 'tls'],
        holds: ({ transport, tls }) => transport === 'plain_http' || tls !== undefined,
        rule: 'need [server.tls] when the transport is tls_http1, tls or tls_h2_only',
        fix: 'set server.tls.cert_pem_path and server.tls.key_pem_path',
      },
      {
        keys: ['egress_port', 'port'],
        holds: ({ egress_port, port }) => egress_port !== port,
        rule: 'not be the same',
        fix: 'set server.egress_port to another port, or remove it',
      },
    ],
  },
)

export const adminSettings = section(
  'admin',
  {
    enabled: flag(true).describe(
      'Serve the operations and console pages of deployment operators, and accept their scopes.',
    ),
    allowed_addresses: list(addressOrCidr())
      .default([])
      .describe(
        'Addresses and CIDRs from which the scopes of deployment operators may be used; empty allows all.',
      ),
  },
  { about: 'Administration of the deployment by its operators.' },
)

export type AdminSettings = SettingsOf<typeof adminSettings>

export const OPENAPI_PATH = '/openapi.json'

export const openapiSettings = section(
  'openapi',
  {
    enabled: flag(true).describe('Serve GET /openapi.json and its page.'),
    exposure: z
      .enum(['public', 'internal'])
      .register(notes, { example: 'internal' })
      .describe('public is the integrator subset; internal adds the operator surface.'),
    docs_path: z
      .string()
      .regex(/^(\/[A-Za-z0-9._~-]+)+$/)
      .register(notes, { words: 'a path such as "/api/docs"' })
      .default('/api/docs')
      .describe('Where the interactive page is.'),
  },
  { about: 'The description of the API.' },
)

export type ServerSettings = SettingsOf<typeof serverSettings>
export type OpenapiSettings = SettingsOf<typeof openapiSettings>

/** The origin of a local run, or undefined if the settings do not form a valid one. */
export function localOrigin({
  transport,
  base_domain,
  port,
}: Pick<ServerSettings, 'transport' | 'base_domain' | 'port'>): string | undefined {
  const scheme = transport === 'plain_http' ? 'http' : 'https'
  const address = `${scheme}://${base_domain}:${port}`
  return URL.canParse(address) ? new URL(address).origin : undefined
}

/**
 * The default of `server.egress_url`: the host of the issuer at `server.egress_port`. It is the issuer without that port,
 * and where something in front of the listener speaks another scheme to clients.
 */
export function defaultEgressUrl(
  issuer: string,
  { egress_port: port, transport }: Pick<ServerSettings, 'egress_port' | 'transport'>,
): string {
  const url = new URL(issuer)
  const scheme = transport === 'plain_http' ? 'http:' : 'https:'
  if (port === undefined || url.protocol !== scheme) return issuer
  url.port = String(port)
  return url.href.replace(/\/$/, '')
}

/** `[server]` of the egress address. Its parser is node:http, which holds to RFC 9112 on every network. */
export function egressListener(server: ServerSettings, port: number): ServerSettings {
  const transport = server.transport === 'plain_http' ? 'plain_http' : 'tls_http1'
  return { ...server, port, transport, http1_parser: 'node' }
}

function isAddressOrCidr(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  if (bits === undefined) return true
  return /^[0-9]{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)
}
