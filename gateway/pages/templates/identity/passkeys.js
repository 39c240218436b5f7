/**
 * Connects forms with `data-passkey` to WebAuthn. Such a form is hidden until this script runs. Submitting it requests
 * a challenge from `data-options` (or has it in `data-request`), lets the authenticator sign it, and then submits the form with the response in the
 * field `credential`. The response to the form is an ordinary page. `data-passkey-signals` has the arguments of signal
 * methods (WebAuthn Level 3 section 5.1.10), which tell the authenticators what the service accepts. `passkey_sync` is
 * filled where the browser can do this or create passkeys without asking: then the sign-in ends on a page that does both,
 * and leads on.
 */
;(() => {
  const {
    WebAuthnAbortService,
    browserSupportsWebAuthn,
    browserSupportsWebAuthnAutofill,
    startAuthentication,
    startRegistration,
  } = globalThis.SimpleWebAuthnBrowser
  /** A background challenge is renewed after this fraction of its lifetime. */
  const RENEWED_PART = 0.8
  /** How long the page after a sign-in waits for the browser. */
  const SIGNAL_MS = 1000
  const CREATE_MS = 5000

  async function optionsFor(form) {
    if (form.dataset.request !== undefined) return JSON.parse(form.dataset.request)
    const body = new URLSearchParams(new FormData(form))
    body.delete('credential')
    const answer = await fetch(form.dataset.options, {
      method: 'POST',
      headers: { accept: 'application/json' },
      body,
    })
    if (!answer.ok && answer.status !== 401) throw new Error(`options: ${answer.status}`)
    const { options, location: elsewhere } = await answer.json()
    if (elsewhere === undefined) return options
    location.assign(elsewhere)
    return null
  }

  function send(form, credential) {
    form.elements.credential.value = JSON.stringify(credential)
    form.submit()
  }

  /** Shows the error, unless the user started another ceremony. */
  function showError(form, error) {
    if (error?.code === 'ERROR_CEREMONY_ABORTED') return
    const status = form.querySelector('[role=status]')
    const cancelled = error?.name === 'NotAllowedError' || error?.name === 'AbortError'
    const known = error?.name === 'InvalidStateError'
    const { cancelled: gaveUp, known: again, failed } = status.dataset
    status.textContent = cancelled ? gaveUp : known ? (again ?? failed) : failed
  }

  async function ceremony(form, button) {
    button.disabled = true
    form.querySelector('[role=status]').textContent = ''
    try {
      const optionsJSON = await optionsFor(form)
      if (optionsJSON === null) return
      const start = form.dataset.passkey === 'create' ? startRegistration : startAuthentication
      send(form, await start({ optionsJSON }))
    } catch (error) {
      showError(form, error)
    } finally {
      button.disabled = false
    }
  }

  /** Conditional UI: offers passkeys in the autofill of the email field while the page is open. */
  async function autofill(form) {
    if (!(await browserSupportsWebAuthnAutofill())) return
    try {
      const optionsJSON = await optionsFor(form)
      if (optionsJSON === null) return
      const renewal = setTimeout(() => {
        WebAuthnAbortService.cancelCeremony()
        void autofill(form)
      }, optionsJSON.timeout * RENEWED_PART)
      const stop = () => clearTimeout(renewal)
      form.addEventListener('submit', stop, { once: true })
      send(form, await startAuthentication({ optionsJSON, useBrowserAutofill: true }))
    } catch {
      // The user did not start this ceremony: the button and the password still work.
    }
  }

  async function signal(element) {
    for (const [method, argument] of Object.entries(JSON.parse(element.dataset.passkeySignals))) {
      try {
        await globalThis.PublicKeyCredential?.[method]?.(argument)
      } catch {
        // The authenticators keep what they have.
      }
    }
  }

  const signals = [...document.querySelectorAll('[data-passkey-signals]')].map(signal)

  const capabilities = async () =>
    (await globalThis.PublicKeyCredential?.getClientCapabilities?.()) ?? {}

  async function offerSync(fields) {
    const { conditionalCreate, signalAllAcceptedCredentials } = await capabilities()
    if (!conditionalCreate && !signalAllAcceptedCredentials) return
    for (const field of fields) field.value = 'yes'
  }

  const fields = document.querySelectorAll('input[name=passkey_sync]')
  if (fields.length > 0) void offerSync(fields)

  /** Lets the browser create a passkey if it likes to. Then the page leads on. */
  async function sync(link) {
    await Promise.race([Promise.all(signals), new Promise((done) => setTimeout(done, SIGNAL_MS))])
    const form = document.querySelector('form[data-passkey-conditional]')
    const tooLong = setTimeout(() => WebAuthnAbortService.cancelCeremony(), CREATE_MS)
    try {
      if (form !== null && (await capabilities()).conditionalCreate) {
        const optionsJSON = JSON.parse(form.dataset.passkeyConditional)
        send(form, await startRegistration({ optionsJSON, useAutoRegister: true }))
        return
      }
    } catch {
      // The browser has a passkey of the account, or creates none.
    } finally {
      clearTimeout(tooLong)
    }
    location.replace(link.href)
  }

  const onward = document.querySelector('[data-passkey-onward]')
  if (onward !== null) void sync(onward)

  for (const form of document.querySelectorAll('form[data-passkey]')) {
    if (!browserSupportsWebAuthn()) continue
    form.hidden = false
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      void ceremony(form, event.submitter ?? form.querySelector('button'))
    })
    if (form.dataset.autofill !== undefined) void autofill(form)
  }
  if (browserSupportsWebAuthn()) {
    for (const words of document.querySelectorAll('[data-passkey-missing]')) words.hidden = true
    for (const words of document.querySelectorAll('[data-passkey-shown]')) words.hidden = false
  }
})()
