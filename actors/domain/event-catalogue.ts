/**
 * The event catalogue: all types of events in the outbox, by category, with the members of their data. The schemas of webhooks
 * and the types of `catalogued` come from it. Subscriptions to other types are refused.
 */
import { z } from 'zod'

export const EXAMPLE_TIME = '2026-01-01T00:00:00.000Z'
export const EXAMPLE_ID = '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e'
export const EXAMPLE_OTHER = '0199c5a0-9d2f-7c71-8e46-2a3b4c5d6e7f'

export const Party = z
  .object({ type: z.string(), id: z.string() })
  .meta({ id: 'EventParty', description: 'The actor or the resource of an event.' })

/**
 * Members besides actor, resource and request_id, with example values. A member without one is sent, and not described to
 * receivers.
 */
export type Fields = Readonly<Record<string, readonly [schema: z.ZodType, example?: unknown]>>

const text = z.string()
const nullable = z.string().nullable()
const email = [text, 'ada@example.com'] as const
const ip = [text, '198.51.100.7'] as const
const user = {
  email: [text.optional(), email[1]],
  status: [text.optional(), 'active'],
  fixture: [z.boolean().optional(), false],
} satisfies Fields
const access = {
  client_id: [text.optional(), EXAMPLE_ID],
  sub: [nullable.optional(), EXAMPLE_ID],
  session_id: [nullable.optional(), EXAMPLE_OTHER],
} satisfies Fields
const member = (type: string, role: string) =>
  ({
    member: [Party, { type, id: EXAMPLE_ID }],
    member_id: [text.optional(), EXAMPLE_OTHER],
    role: [text, role],
  }) satisfies Fields
const apiKey = {
  name: [text, 'Nightly export'],
  scopes: [z.array(text), ['users:read']],
  expires_at: [z.iso.datetime(), '2026-04-01T00:00:00.000Z'],
} satisfies Fields
const transfer = {
  transfer_id: [text, EXAMPLE_OTHER],
  from_organization_id: [text, EXAMPLE_ID],
  to_organization_id: [text, EXAMPLE_OTHER],
} satisfies Fields
/** A call that waits for a person. */
const approval = {
  kind: [z.enum(['egress', 'mcp']), 'egress'],
  status: [z.enum(['pending', 'approved', 'denied', 'used', 'expired']), 'pending'],
  agent_id: [text, EXAMPLE_ID],
  grant_id: [text, EXAMPLE_OTHER],
  credential_id: [nullable, EXAMPLE_OTHER],
  method: [text.optional(), 'POST'],
  host: [text.optional(), 'api.example.com'],
  path: [text.optional(), '/v1/charges'],
  body_sha256: [
    text.optional(),
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  ],
  server: [text.optional()],
  tool: [text.optional()],
  arguments_sha256: [text.optional()],
  expires_at: [z.iso.datetime(), EXAMPLE_TIME],
} satisfies Fields
const credential = { credential_id: [text.optional(), EXAMPLE_OTHER] } satisfies Fields
/** What a certificate authority signed. */
const signature = {
  serial: [text.optional()],
  principals: [z.array(text).optional()],
  target_host: [text.optional()],
  valid_before: [z.iso.datetime().optional()],
} satisfies Fields
/** What a wallet was asked to sign. */
const intent = {
  kind: [text, 'x402_payment'],
  network: [text, 'eip155:8453'],
  contract: [nullable, '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'],
  recipient: [text, '0x8ba1f109551bd432803012645ac136ddd64dba72'],
  asset: [text, '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'],
  amount: [text, '5000000'],
} satisfies Fields

/** The same members, each of which can be absent. */
function optional<F extends Readonly<Record<string, readonly [z.ZodType, unknown]>>>(fields: F) {
  const members = Object.entries(fields).map(([name, [type, example]]) => [
    name,
    [type.optional(), example],
  ])
  return Object.fromEntries(members) as {
    readonly [Name in keyof F]: readonly [z.ZodOptional<F[Name][0]>, F[Name][1]]
  }
}

const EXAMPLE_OWNER = '0x8ba1f109551bd432803012645ac136ddd64dba72'
/** The log of a registry (ERC-8004). */
const chainLog = {
  chain: [text, 'eip155:8453'],
  registry: [
    text.describe('Address of the contract.'),
    '0x8004a169fb4a3325136eb29fa0ceb6d2e539a432',
  ],
  anchor: [text, 'eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:22'],
  chain_agent_id: [text.describe('ERC-721 token id.'), '22'],
  block_number: [z.int(), 41_230_118],
  transaction_hash: [text, `0x${'5c'.repeat(32)}`],
  log_index: [z.int(), 3],
} satisfies Fields
const cut = {
  truncated: [
    z.literal(true).optional().describe('A text of the log was longer than 2,048 characters.'),
    true,
  ],
} satisfies Fields

const money = {
  amount_minor: [z.int(), 1999],
  currency: [z.string().regex(/^[A-Z]{3}$/), 'USD'],
} satisfies Fields
const settlement = (status: string) =>
  ({
    charge_id: [text, EXAMPLE_OTHER],
    rail: [text, 'sandbox'],
    ...money,
    status: [text, status],
  }) satisfies Fields
const dispute = (status: string) =>
  ({
    charge_id: [text, EXAMPLE_OTHER],
    ...money,
    reason: [text, 'fraudulent'],
    status: [text, status],
  }) satisfies Fields
const payout = (status: string) =>
  ({
    rail: [text, 'sandbox'],
    ...money,
    status: [text, status],
  }) satisfies Fields
/** What each event of a payment has. */
const payment = {
  charge_id: [text, EXAMPLE_OTHER],
  amount_minor: [z.int(), 1999],
  currency: [z.string().regex(/^[A-Z]{3}$/), 'USD'],
  metadata: [z.record(z.string(), z.unknown()), { order: '1234' }],
  buyer_metadata: [z.record(z.string(), z.unknown()).optional(), { size: 'M' }],
  product_id: [text.optional(), EXAMPLE_ID],
  price_id: [text.optional(), EXAMPLE_ID],
  buyer_id: [text.optional(), EXAMPLE_ID],
  customer_email: [text.optional(), email[1]],
  subscription_id: [text.optional(), EXAMPLE_ID],
} satisfies Fields

const connection = {
  connector: [text, 'github'],
  user_id: [text, EXAMPLE_ID],
  agent_id: [text.optional(), EXAMPLE_OTHER],
  credential_id: [text.optional(), EXAMPLE_ID],
  scopes: [z.array(text), ['read:user']],
} as const

export const EVENT_CATALOGUE = {
  Authentication: {
    'auth.login.success': {
      amr: [z.array(text).optional(), ['pwd', 'otp']],
      acr: [text.optional(), 'aal2'],
    },
    'auth.login.failure': {
      reason: [text.optional(), 'password'],
      ip: [text.optional(), ip[1]],
      method: [text.optional()],
      key_id: [text.optional()],
    },
    'auth.logout': { reason: [text.optional(), 'user'] },
    'auth.token.issued': {
      grant: [text, 'client_credentials'],
      ...access,
      subject_type: [text, 'agent'],
      scope: [text, 'vault:list vault:read'],
      audience: [z.array(text), ['https://auth.svc.example']],
      expires_at: [z.iso.datetime(), '2026-01-01T00:05:00.000Z'],
      delegation_id: [text.optional(), EXAMPLE_OTHER],
    },
    'auth.token.revoked': access,
    'session.logout.undelivered': {
      client_id: [text.describe('The application that got no logout token.'), EXAMPLE_OTHER],
      sub: [text, 'q3Tn5vXlYw'],
      attempts: [z.int(), 5],
      status: [z.int().optional().describe('The last answer of the application.'), 503],
      error: [text, 'unexpected_status'],
    },
  },
  'MFA and risk': {
    'auth.mfa.challenge': {
      methods: [z.array(text).optional(), ['passkey', 'totp', 'recovery_code']],
    },
    'auth.mfa.verify': {
      outcome: [text.optional(), 'success'],
      method: [text.optional(), 'passkey'],
      enrolled: [z.boolean().optional(), true],
      conditional: [
        z
          .boolean()
          .optional()
          .describe('The browser created the passkey after a sign-in with a password.'),
        true,
      ],
    },
    'auth.adaptive_mfa.triggered': {
      reasons: [z.array(text).optional(), ['new_device', 'new_network']],
      method: [text.optional(), 'mail'],
    },
  },
  'Tenant users': {
    'tenant_user.invited': user,
    'tenant_user.activated': user,
    'tenant_user.suspended': user,
    'tenant_user.removed': user,
  },
  'API keys': {
    'api_key.created': apiKey,
    'api_key.rotated': apiKey,
    'api_key.revoked': apiKey,
  },
  Administration: {
    'admin.user.created': user,
    'admin.user.password_reset': { email: [text, email[1]] },
    'admin.user.factors_reset': {
      email: [text, email[1]],
      passkeys: [z.number().int(), 1],
      authenticators: [z.number().int(), 1],
    },
    'admin.agent.registered': {
      name: [text, 'Buyer'],
      did: [text, 'did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw'],
      key_id: [text, 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'],
    },
    'admin.delegation.revoked': {
      delegation_id: [text, EXAMPLE_OTHER],
      agent_id: [text, EXAMPLE_ID],
      sub: [text, 'Q2hYc0lkb1JtZ3ZxTnBBdA'],
      scope: [text, 'vault:list vault:read'],
      reason: [text, 'revoked'],
    },
  },
  Vault: {
    'vault.credential.created': {
      provider: [text, 'github'],
      credential_type: [text, 'api_key'],
      label: [text, 'Deployments'],
      auth_scheme: [text, 'bearer'],
      allowed_hosts: [z.array(text), ['api.github.com']],
      non_exportable: [z.boolean(), true],
    },
    'vault.grant.revoked': {
      ...credential,
      grantee_type: [text.optional(), 'agent'],
      grantee_id: [text.optional(), EXAMPLE_ID],
    },
    'vault.budget.exceeded': {
      ...credential,
      budget: [z.enum(['requests', 'bytes', 'llm_tokens']), 'llm_tokens'],
      limit: [z.int(), 100_000],
      left: [z.int(), 0],
      window: [z.enum(['hour', 'day', 'month', 'total']), 'day'],
      window_ends_at: [z.iso.datetime().nullable(), EXAMPLE_TIME],
    },
    'vault.credential.reauthorization_required': {
      provider: [text, 'github'],
      label: [text, 'Deployments'],
      auth_scheme: [text, 'oauth2_refresh'],
    },
    'vault.connection.requested': connection,
    'vault.connection.activated': connection,
    'vault.connection.denied': connection,
    'vault.connection.expired': connection,
    'vault.connection.needs_reauthorization': connection,
    'vault.connection.revoked': connection,
    'vault.credential.accessed': {
      access: [text.optional(), 'egress'],
      host: [text.optional(), 'api.example.com'],
      method: [text.optional(), 'POST'],
      approval_id: [text.optional()],
      ...signature,
    },
    'vault.approval.requested': approval,
    'vault.approval.approved': approval,
    'vault.approval.denied': approval,
    'vault.approval.expired': approval,
    'vault.approval.used': approval,
    'egress.stream.closed': {
      ...credential,
      host: [text.optional(), 'api.example.com'],
      method: [text.optional(), 'POST'],
      outcome: [text.optional(), 'completed'],
      bytes: [z.int().optional(), 1024],
      chunks: [z.int().optional(), 3],
      duration_ms: [z.int().optional(), 412],
      redactions: [z.int().optional(), 0],
      input_tokens: [z.int().optional(), 25],
      output_tokens: [z.int().optional(), 310],
      status: [z.int().optional(), 200],
    },
  },
  Wallet: {
    'wallet.tx.signed': {
      agent_id: [text, EXAMPLE_ID],
      signature_id: [text, EXAMPLE_OTHER],
      address: [text, '0x2c7536E3605D9C16a7a3D7b1898e529396a65c23'],
      ...intent,
      fee_max: [text, '0'],
      hash: [text, '0x9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
      nonce: [text, '0x60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752'],
      valid_before: [z.iso.datetime().nullable(), EXAMPLE_TIME],
      payment_resource: [nullable, 'https://api.example.com/report'],
    },
    'wallet.tx.rejected': {
      agent_id: [text, EXAMPLE_ID],
      /** The code of the error. */
      reason: [text, 'recipient_not_allowed'],
      address: [text.optional(), '0x2c7536E3605D9C16a7a3D7b1898e529396a65c23'],
      ...optional(intent),
    },
    'wallet.budget.exceeded': {
      agent_id: [text, EXAMPLE_ID],
      network: [text, 'eip155:8453'],
      asset: [text, '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'],
      amount: [text, '5000000'],
      payment_max: [nullable, '5000000'],
      window_max: [nullable, '20000000'],
      window_secs: [z.int().nullable(), 86_400],
      spent: [nullable, '18000000'],
    },
  },
  Chain: {
    'chain.ownership.changed': {
      ...chainLog,
      previous_owner: [text, `0x${'0'.repeat(40)}`],
      owner: [text, EXAMPLE_OWNER],
    },
    'chain.reputation.updated': {
      ...chainLog,
      change: [z.enum(['feedback', 'revoked']), 'feedback'],
      client: [text, EXAMPLE_OWNER],
      feedback_index: [text, '1'],
      value: [text.optional(), '87'],
      value_decimals: [z.int().optional(), 0],
      tag1: [text.optional(), 'starred'],
      tag2: [text.optional(), ''],
      endpoint: [text.optional(), 'https://agents.example.com/mcp'],
      feedback_uri: [text.optional(), 'ipfs://bafybeigdyrzt'],
      feedback_hash: [text.optional(), `0x${'00'.repeat(32)}`],
      ...cut,
    },
    'chain.metadata.changed': {
      ...chainLog,
      change: [z.enum(['uri', 'metadata']), 'uri'],
      uri: [text.optional(), 'https://agents.example.com/22.json'],
      updated_by: [text.optional(), EXAMPLE_OWNER],
      key: [text.optional(), 'agentWallet'],
      value: [text.optional().describe('Bytes in hexadecimal digits.'), '0x01'],
      ...cut,
    },
  },
  SSO: {
    'sso.configured': {
      change: [text.optional(), 'created'],
      name: [text.optional(), 'Example ID'],
      issuer: [text.optional(), 'https://id.example.org'],
      active: [z.boolean().optional(), true],
    },
    'sso.login.success': {
      provider: [text, EXAMPLE_OTHER],
      issuer: [text, 'https://id.example.org'],
    },
    'sso.login.failed': {
      provider: [text, EXAMPLE_OTHER],
      reason: [text, 'unverified_email'],
      detail: [text, 'unverified_email'],
      ip,
    },
    'sso.user.provisioned': {
      /** The id of the identity provider, or `scim`. */
      provider: [text, EXAMPLE_OTHER],
      email: [text.optional(), email[1]],
      status: [text.optional(), 'pre_provisioned'],
      fixture: [z.boolean().optional(), false],
    },
  },
  Organizations: {
    'org.created': { name: [text, 'Acme Robotics'], slug: [text, 'acme-robotics'] },
    'org.billing.changed': {
      plan: [nullable, 'Team'],
      suspended: [z.boolean(), false],
    },
    'org.suspended': {},
    'org.reactivated': {},
    'org.tenant.suspended': {},
    'org.tenant.reactivated': {},
    'org.tenant.transfer_requested': transfer,
    'org.tenant.transfer_closed': transfer,
    'org.tenant.transferred': transfer,
    'org.member.invited': { ...member('invitation', 'admin'), email },
    'org.member.added': member('agent', 'owner'),
    'org.member.role_changed': { ...member('agent', 'admin'), role_before: [text, 'owner'] },
    'org.member.removed': member('agent', 'member'),
  },
  Security: {
    'security.brute_force.detected': {
      subject: [text.optional(), 'password'],
      ip: [text.optional(), ip[1]],
    },
    'security.client.metadata_changed': {
      client_id: [text, 'https://client.example.com/metadata.json'],
      document_sha256: [text, '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
      previous_document_sha256: [
        text,
        '60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752',
      ],
    },
    'security.refresh_token.reuse': { reason: [text.optional(), 'reused'], ...access },
    'security.suspicious_activity': { reason: [text] },
  },
  'Commerce payment': {
    'commerce.payment.pending': {
      ...payment,
      // For a renewal that the buyer pays on a page. The merchant sends the URL to the buyer.
      invoice_url: [z.url().optional(), 'https://auth.svc.example/pay/0aB1…'],
      invoice_expires_at: [z.iso.datetime().optional(), EXAMPLE_TIME],
      x402_url: [z.url().optional(), 'https://auth.svc.example/api/v1/public/commerce/…'],
    },
    'commerce.payment.succeeded': payment,
    'commerce.payment.failed': { ...payment, failure_code: [text.optional(), 'declined'] },
    'commerce.payment.refunded': {
      ...payment,
      refunded_amount_minor: [z.int().optional(), 1999],
      refund_id: [text.optional(), EXAMPLE_OTHER],
      refund_amount_minor: [z.int().optional(), 1999],
      external_reference: [text.optional(), '0x5c50…'],
    },
  },
  'Commerce settlement': {
    'commerce.settlement.created': settlement('created'),
    'commerce.settlement.held': {
      ...settlement('held'),
      hold_reason: [text.optional(), 'dispute'],
    },
    'commerce.settlement.released': settlement('released'),
  },
  'Commerce dispute': {
    'commerce.dispute.opened': dispute('opened'),
    'commerce.dispute.closed': { ...dispute('closed'), outcome: [text, 'won'] },
  },
  'Commerce payout': {
    'commerce.payout.submitted': payout('submitted'),
    'commerce.payout.paid': payout('paid'),
    'commerce.payout.failed': { ...payout('failed'), failure_code: [text, 'account_closed'] },
  },
  'Commerce statement': {
    'commerce.statement.created': {
      currency: money.currency,
      opening_balance_minor: [z.int(), 0],
      closing_balance_minor: [z.int(), 1999],
      totals: [z.record(z.string(), z.unknown()), { charge: { count: 1, amount_minor: 1999 } }],
      period_start: [z.iso.datetime(), EXAMPLE_TIME],
      period_end: [z.iso.datetime(), '2026-02-01T00:00:00.000Z'],
    },
  },
  Webhooks: {
    'webhook.test': {},
  },
} satisfies Readonly<Record<string, Readonly<Record<string, Fields>>>>
