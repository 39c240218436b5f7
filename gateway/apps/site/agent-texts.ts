/** The texts of /llms.txt (llmstxt.org) and /auth.md. They name only what the deployment serves. */
import { OWNERSHIP_SUITE } from '../../../actors/domain/signed-strings.js'
import { DOCUMENTATION } from './markdown.js'

export type TextOptions = {
  /** The public base URL, without a trailing slash. */
  readonly issuer: string
  /** Declared paths of the routes of the deployment. */
  readonly paths: ReadonlySet<string>
  /** Names of GET /api/v1/capabilities. */
  readonly capabilities: ReadonlySet<string>
  /** Path of the API page, or null if it is not served. */
  readonly docsPath: string | null
  /** Pages below /documentation. */
  readonly pages: readonly string[]
}

const BOOTSTRAP = '/api/v1/agents/workspace/bootstrap'

type Entry = readonly [title: string, path: string, words: string]

/** Documents in machine-readable form, with the path that must be declared. */
const DOCUMENTS: readonly Entry[] = [
  [
    'Authorization server metadata',
    '/.well-known/oauth-authorization-server',
    'RFC 8414: endpoints, grants, algorithms',
  ],
  [
    'OpenID Connect discovery',
    '/.well-known/openid-configuration',
    'the same for OpenID Connect clients',
  ],
  [
    'Protected resource metadata',
    '/.well-known/oauth-protected-resource',
    'RFC 9728: the scopes of this API',
  ],
  ['Key set', '/.well-known/jwks.json', 'public keys that verify tokens'],
  ['Capabilities', '/api/v1/capabilities', 'the features of this deployment'],
  ['Bootstrap metadata', BOOTSTRAP, 'what an agent signs to prove the ownership of its key'],
  ['OpenAPI 3.1', '/openapi.json', 'every operation, schema, error and event'],
]

/** Pages that agents and application developers read first. */
const FIRST_PAGES: readonly Entry[] = [
  [
    'Quickstart for agents',
    'get-started/agent-developer.md',
    'from a key to an API call with a stored credential',
  ],
  [
    'Quickstart for applications',
    'get-started/application-developer.md',
    'sign users in with OpenID Connect',
  ],
  ['Quickstart for APIs', 'get-started/api-developer.md', 'verify access tokens'],
  ['Quickstart for operators', 'get-started/operator.md', 'run the service'],
  ['Agents', 'guides/agents/agents.md', 'registration and login, with curl'],
  ['Delegation', 'guides/agents/delegation.md', 'act for a user who approves it'],
  ['Egress proxy', 'guides/vault/egress-proxy.md', 'call an API with a secret that you never see'],
  [
    'MCP discovery',
    'guides/operations/mcp-discovery.md',
    'read-only tools that describe the service',
  ],
  ['Errors', 'reference/errors.md', 'every problem type with its meaning'],
]

/** The text of GET /llms.txt. */
export function overviewText(options: TextOptions): string {
  const { issuer, paths, capabilities, pages, docsPath } = options
  const has = (path: string) => paths.has(path)
  const link = (title: string, url: string, words: string) => `- [${title}](${url}): ${words}`
  const known = new Set(pages)
  const first = FIRST_PAGES.filter(([, page]) => known.has(page))
  const named = new Set(first.map(([, page]) => page))
  const others = pages.filter((page) => !named.has(page))
  const page = (name: string) => `${issuer}${DOCUMENTATION}/${name}`
  return joined([
    '# svc',
    `> An identity provider and OAuth 2.0 / OpenID Connect authorization server for people and software agents. This deployment is ${issuer}.`,
    'An agent proves possession of its key to get an identity. It acts for a user only after the user approves it. ' +
      `Start with [auth.md](${issuer}/auth.md).`,
    '## What an agent does',
    lines(
      `1. Read ${issuer}/auth.md.`,
      ...(capabilities.has('agents.pow_registration')
        ? [
            '2. Register a key and log in with it.',
            '3. Ask a user for authority, if you act for a user.',
          ]
        : ['2. Get credentials from an administrator.']),
      'Errors are problem documents (RFC 9457). Branch on `error`; the URL in `type` explains it.',
    ),
    '## Machine-readable documents',
    lines(
      ...DOCUMENTS.filter(([, path]) => has(path)).map(([title, path, words]) =>
        link(title, issuer + path, words),
      ),
      ...(capabilities.has('mcp')
        ? [`- MCP server: POST ${issuer}/mcp (Streamable HTTP, no credentials, read-only tools)`]
        : []),
    ),
    first.length === 0 ? '' : '## Documentation',
    lines(...first.map(([title, name, words]) => link(title, page(name), words))),
    '## Optional',
    lines(
      ...(docsPath === null
        ? []
        : [link('API page', issuer + docsPath, 'the OpenAPI document for people')]),
      ...(has('/errors/{name}')
        ? [`- Problem types: ${issuer}/errors/ and the name of the type`]
        : []),
      ...others.map((name) => `- [${titleOf(name)}](${page(name)})`),
    ),
  ])
}

/** The text of GET /auth.md. */
export function agentText({ issuer, paths, capabilities, pages }: TextOptions): string {
  const has = (name: string) => capabilities.has(name)
  const guide = (page: string) =>
    pages.includes(page) ? `Details: ${issuer}${DOCUMENTATION}/${page}` : ''
  const metadata = DOCUMENTS.filter(([, path]) => paths.has(path))
  return joined([
    '# How to authenticate',
    'You are a software agent, or you write one. This page says how to get an identity at this service and how to ' +
      'ask a user for authority. All URLs are of this deployment. Bodies and answers are JSON.',
    '## Metadata',
    lines(
      `- Issuer: ${issuer}`,
      ...metadata.map(([title, path, words]) => `- ${title}: ${issuer}${path} (${words})`),
      ...(has('mcp')
        ? [`- MCP tools that describe this service: POST ${issuer}/mcp, without credentials`]
        : []),
    ),
    ...(has('agents.pow_registration') ? registration(issuer, has, guide) : withoutRegistration()),
    ...(has('agents.device_delegation') ? delegation(issuer, guide) : []),
    '## Use a token',
    lines(
      '- Send `Authorization: Bearer TOKEN`, or `Authorization: DPoP TOKEN` with a proof if `token_type` is `DPoP` (RFC 9449).',
      '- After 401 with `token_expired`, refresh once. After `token_revoked`, log in again or ask the user again.',
      '- After 403 with `insufficient_scope`, the header `WWW-Authenticate` names the missing scope.',
      '- After 429 or 503, wait for `Retry-After`. Repeat a write only with an `idempotency-key`.',
      '- Never send a token to another host, and never write it to a log.',
    ),
    '## Errors',
    `Every error has \`error\`, \`detail\` and \`request_id\`. \`type\` is the URL of a page with cause, remedy and retry rule.`,
  ])
}

type Has = (capability: string) => boolean
type GuideLink = (page: string) => string

function registration(issuer: string, has: Has, guide: GuideLink): string[] {
  return [
    '## Register',
    'No administrator is needed: you prove that you own a key, and you do a proof of work.',
    lines(
      '1. Create an `ed25519` or `es256` key. Keep the private key: it is your only credential.',
      `2. GET ${issuer}${BOOTSTRAP}: \`issuer\`, \`control_plane_tenant_id\`, and the rules of the proof.`,
      `3. Sign six fields, joined by one line feed each: \`${OWNERSHIP_SUITE}\`, the issuer, the tenant UUID, ` +
        '`anchor_type` (`did_key`), `key_algorithm`, `public_key`. The signature is base64url of 64 bytes.',
      `4. Start with \`name\`, \`anchor_type\`, \`public_key\`, \`key_algorithm\` and \`key_ownership_proof\`:`,
      ...(has('agents.workspace_bootstrap')
        ? [
            `   - POST ${issuer}${BOOTSTRAP}/pow creates an organization, a sandbox tenant and an application that you own. Sign the UUID of the control plane.`,
          ]
        : []),
      `   - POST ${issuer}/api/v1/agents/auth/register/pow registers you in an existing tenant. Sign the UUID of that tenant and send it as \`tenant_id\`.`,
      '5. Find a decimal `nonce` such that SHA-256 of `{challenge_token}:{nonce}` starts with `difficulty_bits` ' +
        'zero bits. Wait `min_duration_seconds`.',
      '6. POST `challenge_id` and `nonce` to the same path with `/complete`. Secrets of the answer are shown once.',
    ),
    guide('guides/agents/agents.md'),
    '## Log in',
    lines(
      `1. POST ${issuer}/api/v1/agents/auth/challenge with \`agent_id\` and \`tenant_id\`.`,
      '2. Check `payload`, and sign it unchanged with your key.',
      `3. POST ${issuer}/api/v1/agents/auth/verify with \`challenge_id\` and \`signature\`, and \`scope\` for less than everything you may do.`,
      `4. Refresh: POST ${issuer}/oauth/token as a form with \`grant_type=refresh_token\`, \`refresh_token\` and \`client_id\` = your agent id.`,
    ),
  ]
}

const withoutRegistration = () => [
  '## Register',
  'This deployment has no registration of agents. Ask an administrator for credentials.',
]

function delegation(issuer: string, guide: GuideLink): string[] {
  return [
    '## Ask a user for authority',
    'Your own token is not the user. To act for a user, ask for a delegation (the shape of RFC 8628).',
    lines(
      `1. POST ${issuer}/api/v1/agents/delegations/device with your token and \`scope\`. Ask for the least that the task needs.`,
      `2. Show the user \`user_code_display\` and the link: ${issuer} followed by \`verification_uri\`. Never open the link yourself.`,
      `3. Poll: POST ${issuer}/api/v1/agents/delegations/device/token with \`device_code\`, every \`interval\` seconds. ` +
        'After `slow_down`, wait 5 seconds longer. Stop after `access_denied` or `expired_token`.',
      '4. The token of the answer names the user as `sub` and you as `act`. It may have fewer scopes than you asked for: read `scope`.',
      '5. The user can revoke the delegation at any time. Then ask again, or stop.',
    ),
    guide('guides/agents/delegation.md'),
  ]
}

/** Sections with an empty line between them, without empty ones. */
const joined = (sections: readonly string[]): string =>
  `${sections.filter((section) => section !== '').join('\n\n')}\n`

const lines = (...all: readonly string[]): string => all.join('\n')

/** `guides/oauth/dpop.md` becomes `guides, oauth: dpop`. */
function titleOf(page: string): string {
  const parts = page.replace(/\.md$/, '').split('/')
  const name = parts.pop()!.replaceAll('-', ' ')
  return parts.length === 0 ? name : `${parts.join(', ')}: ${name}`
}
