/** The other ways to sign in. */
import { browserSessions } from '../../actors/identity/sign-in/sessions/protocol.js'
import { passwordRecoveryActor } from '../../actors/identity/sign-in/recovery/actor.js'
import { login } from '../../actors/identity/sign-in/protocol.js'
import { guestsActor } from '../../actors/identity/sign-in/ways/guest/actor.js'
import { siweActor } from '../../actors/identity/sign-in/ways/ethereum/actor.js'
import { phoneActor } from '../../actors/identity/sign-in/ways/phone/actor.js'
import { passkeysActor } from '../../actors/identity/sign-in/ways/passkey/actor.js'
import { webauthn } from '../../actors/identity/sign-in/ways/passkey/library.js'
import { relyingParty } from '../../actors/identity/sign-in/ways/passkey/settings.js'
import { passwords } from '../../actors/identity/passwords/protocol.js'
import { federatedLogin } from '../../actors/identity/sign-in/ways/federated/protocol.js'
import { tenants } from '../../actors/identity/users/tenants/protocol.js'
import { type ActorWiring, wireActor } from '../kernel/wiring.js'
import { textSenderOf } from './mail.js'
import type { SharedNeeds } from './shared-needs.js'

/** The actors of this file, with their dependencies. */
export function signInWirings(shared: SharedNeeds): readonly ActorWiring[] {
  const {
    resources,
    settings,
    database,
    coordination,
    clock,
    random,
    auth,
    issuer,
    alwaysTwo,
    registry,
    offers,
    gate,
    mailQueue,
    common,
  } = shared
  return [
    wireActor(passkeysActor, async ({ ref }) => {
      if (settings.deployment.thread_start === 'at_start') await webauthn()
      return {
        database,
        coordination,
        clock,
        random,
        login: ref(login),
        browserSessions: ref(browserSessions),
        federatedLogin: ref(federatedLogin),
        settings: auth,
        cookies: settings.session_cookie,
        passkeys: settings.passkey.enabled,
        relyingParty: relyingParty(settings.passkey, issuer),
        mail: mailQueue,
        email: settings.email,
        adaptiveMfa: settings.adaptive_mfa,
        registry,
        offers,
      }
    }),
    wireActor(phoneActor, ({ ref, onStop }) => {
      const sender = textSenderOf(resources)
      onStop(() => sender.close())
      return {
        ...common,
        coordination,
        settings: auth,
        cookies: settings.session_cookie,
        tenants: ref(tenants),
        browserSessions: ref(browserSessions),
        sms: settings.sms,
        i18n: settings.i18n,
        mail: mailQueue,
        email: settings.email,
        adaptiveMfa: settings.adaptive_mfa,
        sender,
        issuer,
        registry,
      }
    }),
    wireActor(guestsActor, () => ({
      ...common,
      coordination,
      settings: auth,
      adaptiveMfa: settings.adaptive_mfa,
      cookies: settings.session_cookie,
      mail: mailQueue,
      email: settings.email,
      anonymous: settings.anonymous,
      registry,
    })),
    wireActor(siweActor, ({ ref }) => ({
      ...common,
      coordination,
      settings: auth,
      cookies: settings.session_cookie,
      tenants: ref(tenants),
      browserSessions: ref(browserSessions),
      siwe: settings.siwe,
      mail: mailQueue,
      email: settings.email,
      adaptiveMfa: settings.adaptive_mfa,
      issuer,
      registry,
    })),
    wireActor(passwordRecoveryActor, ({ ref }) => ({
      ...common,
      coordination,
      browserSessions: ref(browserSessions),
      passwords: ref(passwords),
      tenants: ref(tenants),
      settings: auth,
      adaptiveMfa: settings.adaptive_mfa,
      cookies: settings.session_cookie,
      gate,
      mail: mailQueue,
      email: settings.email,
      selfService: settings.user_self_service,
      alwaysTwo,
      issuer,
    })),
  ]
}
