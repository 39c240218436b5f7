/** Credentials of the vault, their grants and leases, as the API shows them. */
import { z } from 'zod'
import { APPROVAL_MODES } from '../vault/approvals.js'
import { ANY_AUTH_SCHEME, isTokenScheme } from '../vault/egress.js'
import { GrantBudget } from '../vault/budgets.js'
import type { RecordOf } from './record.js'

type Uses = {
  /** The egress proxy sends its secret, and keeps the limits of its grants. */
  readonly egress: boolean
  /** Its secret can be the token of an oauth2 credential. */
  readonly tokenOf: boolean
  /** What a grant allows besides `list`. */
  readonly capability: 'use' | 'sign'
}

/** The credential types. A new one is a row here, and a value in the check of its column. */
// biome-ignore format: a table
export const CREDENTIAL_TYPES = {
  oauth2: { egress: false, tokenOf: false, capability: 'use' },
  api_key: { egress: true, tokenOf: true, capability: 'use' },
  ssh_key: { egress: true, tokenOf: false, capability: 'use' },
  ssh_ca: { egress: false, tokenOf: false, capability: 'sign' },
  custom: { egress: true, tokenOf: true, capability: 'use' },
} as const satisfies Readonly<Record<string, Uses>>
export type CredentialType = keyof typeof CREDENTIAL_TYPES

/** True if the egress proxy sends the secret of such a credential, or a token that it gets with it. */
export const isForEgress = (type: CredentialType, scheme: string): boolean =>
  // The next release may know further types.
  CREDENTIAL_TYPES[type]?.egress === true || isTokenScheme(scheme)

export const credentialType = z.enum(Object.keys(CREDENTIAL_TYPES) as CredentialType[])
export const authScheme = z
  .string()
  .max(80)
  .meta({
    description: `${ANY_AUTH_SCHEME}. none for an ssh_ca.`,
    example: 'bearer',
  })
export const metadata = z.record(z.string(), z.unknown())
const time = z.iso.datetime()
export const capability = z.enum(['list', 'use', 'sign'])
const status = z
  .enum(['active', 'revoked', 'expired', 'spent'])
  .meta({ description: '`spent`: the byte budget has ended a call, and admits no other.' })

const members = {
  id: z.uuid().meta({ description: 'The credential_id for egress and SSH signing.' }),
  tenant_id: z.uuid(),
  tenant_name: z.string(),
  provider: z.string(),
  credential_type: credentialType,
  label: z.string(),
  auth_scheme: authScheme,
  allowed_hosts: z.array(z.string()),
  non_exportable: z.boolean(),
  status: z.enum(['active', 'needs_reauthorization', 'revoked']).meta({
    description:
      '`needs_reauthorization`: the upstream refuses the refresh token. A new secret makes it active again.',
  }),
  metadata,
  created_at: time,
  updated_at: time,
  last_used_at: time.nullable(),
}

export const VaultCredential = z.object(members).meta({ id: 'VaultCredential' })

export const OperatorCredential = z
  .object({
    ...members,
    ca_public_key: z
      .string()
      .optional()
      .meta({ description: 'For an ssh_ca: the TrustedUserCAKeys line.' }),
    token_of: z
      .uuid()
      .optional()
      .meta({ description: 'The oauth2 credential whose access token is the secret.' }),
  })
  .meta({ id: 'OperatorCredential' })

export const VaultGrant = z
  .object({
    id: z.uuid(),
    credential_id: z.uuid(),
    grantee_type: z.enum(['agent', 'delegation']),
    grantee_id: z.string(),
    capabilities: z.array(capability),
    methods: z.array(z.string()).optional(),
    path_prefixes: z.array(z.string()).optional(),
    allow_range: z.boolean(),
    approval: z.enum(APPROVAL_MODES),
    max_requests: z.int().optional(),
    max_bytes: z.int().optional(),
    budget: GrantBudget.optional(),
    status,
    expires_at: time.nullable(),
    created_at: time,
    revoked_at: time.nullable(),
  })
  .meta({ id: 'VaultGrant' })

export const VaultLease = z
  .object({
    id: z.uuid(),
    credential_id: z.uuid(),
    recipient_id: z.string(),
    byte_budget: z.int(),
    bytes_used: z.int(),
    status,
    expires_at: time.nullable(),
    created_at: time,
    revoked_at: time.nullable(),
  })
  .meta({ id: 'VaultLease' })

/** A credential without its secret. */
export type Credential = RecordOf<typeof OperatorCredential.shape>
export type Grant = RecordOf<typeof VaultGrant.shape>
/** A grant to an agent with a byte budget. */
export type Lease = RecordOf<typeof VaultLease.shape>
export type Capability = z.output<typeof capability>
export type GrantStatus = Grant['status']
