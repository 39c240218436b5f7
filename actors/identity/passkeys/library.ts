/** The WebAuthn library. Loading it takes a quarter of a second, so only a deployment with passkeys loads it, at its start. */

let loading: Promise<typeof import('@simplewebauthn/server')> | undefined

export function webauthn(): Promise<typeof import('@simplewebauthn/server')> {
  loading ??= import('@simplewebauthn/server')
  return loading
}
