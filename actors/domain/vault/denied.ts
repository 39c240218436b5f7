/** Refusals of vault and egress: a word for the log, one for each cause at every endpoint, and a sentence for the answer. */
export type Denied = {
  readonly tag: 'denied'
  readonly reason:
    | 'address_not_public'
    | 'auth_scheme_differs'
    | 'authorization_revoked'
    | 'call_not_covered'
    | 'credential_not_exportable'
    | 'credential_revoked'
    | 'credential_type_unsupported'
    | 'grant_limited'
    | 'host_not_allowed'
    | 'key_revoked'
    | 'not_approved'
    | 'not_owner'
    | 'secret_not_sent'
    | 'source_address_restricted'
  readonly detail: string
}

export const denied = (reason: Denied['reason'], detail: string): Denied => ({
  tag: 'denied',
  reason,
  detail,
})
