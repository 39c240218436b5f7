/** Request bodies and records of the vault routes. */
import { z } from 'zod'
import { APPROVAL_MODES } from '../../../actors/domain/vault/approvals.js'
import { METHODS } from '../../../actors/domain/vault/egress.js'
import {
  authScheme,
  capability,
  credentialType,
  metadata,
  OperatorCredential,
  VaultCredential,
  VaultGrant,
  VaultLease,
} from '../../../actors/domain/entities/vault.js'
import { SHOWN_TEXT } from '../../../actors/domain/shown-names.js'
import { NewBudget } from '../../../actors/domain/vault/budgets.js'
import { SECRET_DOCUMENTS } from '../../../actors/domain/vault/secret-documents/documents.js'
import { idText } from '../../request/ids.js'
import { presenter } from '../../response/presenter.js'
import { Moment } from '../../request/moment.js'
import { problem } from '../../route.js'

/** Replies to who may not grant a credential. */
export const grantRefusals = {
  denied: problem(403, 'policy-denied', ({ detail }: { detail: string }) => ({ detail })),
  direct_token_needed: problem(403, 'forbidden', {
    reason: 'token_delegated',
    detail: 'This operation needs a direct token of the owner, not a delegated one.',
  }),
}

const LIMIT_MAX = Number.MAX_SAFE_INTEGER

const provider = z.string().min(1).max(64).regex(SHOWN_TEXT)
const label = z.string().min(1).max(120).regex(SHOWN_TEXT)
const hosts = z.array(z.string().max(255)).max(64)
const secret = z.union([
  z.string().min(1).max(65_536),
  ...Object.values(SECRET_DOCUMENTS),
  z.looseObject({}),
])
export const CreateCredential = z
  .object({
    provider,
    credential_type: credentialType,
    label,
    auth_scheme: authScheme.optional(),
    allowed_hosts: hosts.default([]),
    secret: secret.optional().meta({
      description:
        'If omitted for an ssh_ca, a key is generated. For schemes whose secret is a document: a JSON object, or its text.',
      writeOnly: true,
    }),
    token_of: idText()
      .optional()
      .meta({
        description:
          'Instead of a secret, for api_key and custom: an oauth2 credential of the caller whose ' +
          'access token the proxy injects. Its allowed_hosts must include the allowed_hosts of this one.',
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
    approval: z.enum(APPROVAL_MODES).default('none').meta({
      description:
        'Whether a person approves the calls through the egress proxy: none, the first one, or each.',
    }),
    max_requests: z.int().min(1).max(LIMIT_MAX).optional(),
    max_bytes: z.int().min(1).max(LIMIT_MAX).optional(),
    budget: NewBudget.optional(),
    expires_at: Moment.nullable().optional(),
  })
  .meta({ id: 'CreateVaultGrant' })

export const CreateLease = z
  .object({
    recipient_id: idText().meta({ description: 'The id of an agent.' }),
    byte_budget: z.int().min(1).max(LIMIT_MAX).meta({
      description: 'Budget of request and response body bytes.',
    }),
    expires_at: Moment.nullable().optional(),
  })
  .meta({ id: 'CreateVaultLease' })

/** The fields that grantees see. */
export const credentialRecord = presenter(VaultCredential)
export const operatorRecord = presenter(OperatorCredential)
export const grantRecord = presenter(VaultGrant)
export const leaseRecord = presenter(VaultLease)
