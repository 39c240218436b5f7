/** Request bodies and records of the vault routes. */
import { z } from 'zod'
import { idText } from '../../request/ids.js'
import { presenter } from '../../response/presenter.js'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const
const LIMIT_MAX = Number.MAX_SAFE_INTEGER

const credentialType = z.enum(['oauth2', 'api_key', 'ssh_key', 'ssh_ca', 'custom'])
const provider = z
  .string()
  .min(1)
  .max(64)
  .regex(/^\P{Cc}*$/u)
const label = z
  .string()
  .min(1)
  .max(120)
  .regex(/^\P{Cc}*$/u)
const authScheme = z.string().max(80).meta({
  description: 'bearer, basic, header:<name> or query:<key>. none for an ssh_ca.',
  example: 'bearer',
})
const hosts = z.array(z.string().max(255)).max(64)
const metadata = z.record(z.string(), z.unknown())
const time = z.iso.datetime()
const secret = z.string().min(1).max(65_536)
const capability = z.enum(['list', 'use', 'sign'])
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
  status: z.enum(['active', 'revoked']),
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

export const CreateCredential = z
  .object({
    provider,
    credential_type: credentialType,
    label,
    auth_scheme: authScheme.optional(),
    allowed_hosts: hosts.default([]),
    secret: secret
      .optional()
      .meta({ description: 'If omitted for an ssh_ca, a key is generated.', writeOnly: true }),
    token_of: idText()
      .optional()
      .meta({
        description:
          'Instead of a secret, for api_key and custom: an oauth2 credential of the caller whose ' +
          'access token the proxy injects. Its allowed_hosts must include those of this one.',
      }),
    non_exportable: z.boolean().default(true),
    metadata: metadata.default({}),
  })
  .meta({ id: 'CreateVaultCredential' })

export const PatchCredential = z
  .object({
    label: label.optional(),
    allowed_hosts: hosts.optional(),
    metadata: metadata.optional(),
    auth_scheme: authScheme
      .optional()
      .meta({ description: 'Immutable: must equal the stored one.' }),
  })
  .meta({ id: 'PatchVaultCredential' })

export const RotateCredential = z
  .object({ secret: secret.optional().meta({ writeOnly: true }) })
  .meta({ id: 'RotateVaultCredential' })

export const CredentialSecret = z
  .object({ id: z.uuid(), secret: z.string() })
  .meta({ id: 'VaultCredentialSecret' })

export const CreateGrant = z
  .object({
    grantee_type: z.enum(['agent', 'delegation']),
    grantee_id: idText(),
    capabilities: z.array(capability).max(3).optional(),
    methods: z.array(z.enum(METHODS)).max(METHODS.length).optional(),
    path_prefixes: z.array(z.string().max(512)).max(32).optional(),
    allow_range: z.boolean().default(false).meta({
      description: 'True: the proxy passes the Range header on. Ranges can split a secret.',
    }),
    max_requests: z.int().min(1).max(LIMIT_MAX).optional(),
    max_bytes: z.int().min(1).max(LIMIT_MAX).optional(),
    expires_at: time.nullable().optional(),
  })
  .meta({ id: 'CreateVaultGrant' })

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
    max_requests: z.int().optional(),
    max_bytes: z.int().optional(),
    status,
    expires_at: time.nullable(),
    created_at: time,
    revoked_at: time.nullable(),
  })
  .meta({ id: 'VaultGrant' })

export const CreateLease = z
  .object({
    recipient_id: idText().meta({ description: 'The id of an agent.' }),
    byte_budget: z.int().min(1).max(LIMIT_MAX).meta({
      description: 'Budget of request and response body bytes.',
    }),
    expires_at: time.nullable().optional(),
  })
  .meta({ id: 'CreateVaultLease' })

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

/** The fields that grantees see. */
export const credentialRecord = presenter(VaultCredential)
export const operatorRecord = presenter(OperatorCredential)
export const grantRecord = presenter(VaultGrant)
export const leaseRecord = presenter(VaultLease)
