/** Which events of the audit log are uses of a billed feature. docs/guides/operations/plans-and-billing.md. */
import type { UsageRow } from '../../../../storage/identity/organization/billing.js'
import type { AuditOnlyType } from '../../../domain/audit.js'
import type { EventType } from '../../../domain/events.js'
import type { BilledFeature, Usage } from './protocol.js'

type Counted = {
  readonly feature: BilledFeature
  readonly unit: string
  readonly type: AuditOnlyType | EventType
  /** Members `access` of `vault.credential.accessed`. */
  readonly access?: readonly string[]
}

/** Features without a row have no permanent record of their use. */
const COUNTED: readonly Counted[] = [
  { feature: 'api_keys', unit: 'keys_created', type: 'api_key.created' },
  { feature: 'commerce', unit: 'payments', type: 'commerce.payment.succeeded' },
  { feature: 'credential_issuer', unit: 'credentials', type: 'credential.issued' },
  { feature: 'sso.enterprise', unit: 'sign_ins', type: 'sso.login.success' },
  { feature: 'vault', unit: 'credentials_created', type: 'vault.credential.created' },
  {
    feature: 'vault',
    unit: 'secret_reads',
    type: 'vault.credential.accessed',
    access: ['secret_read', 'export', 'managed_token'],
  },
  { feature: 'vault.egress', unit: 'calls', type: 'vault.credential.accessed', access: ['egress'] },
  {
    feature: 'vault.ssh_ca',
    unit: 'certificates',
    type: 'vault.credential.accessed',
    access: ['ssh_sign'],
  },
]

export const USAGE_TYPES: readonly string[] = [...new Set(COUNTED.map(({ type }) => type))]

/** Every figure, also those that are 0. */
export function usageFigures(rows: readonly UsageRow[]): readonly Usage[] {
  return COUNTED.map(({ feature, unit, type, access }) => ({
    feature,
    unit,
    quantity: rows
      .filter(
        (row) => row.type === type && (access === undefined || access.includes(row.access ?? '')),
      )
      .reduce((sum, { events }) => sum + events, 0),
  }))
}

/** A month in UTC: YYYY-MM. */
export function monthOf(time: Date): string {
  return time.toISOString().slice(0, 7)
}

/** First moment of a month, and of the one after it. */
export function boundsOf(month: string): { readonly from: Date; readonly until: Date } {
  const from = new Date(`${month}-01T00:00:00.000Z`)
  const until = new Date(from)
  until.setUTCMonth(until.getUTCMonth() + 1)
  return { from, until }
}
