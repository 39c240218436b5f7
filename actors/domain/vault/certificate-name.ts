/** By what SSH certificates are named when they are revoked. */
export type CertificateName = 'serial' | 'key_id' | 'public_key' | 'principal' | 'delegation_id'
