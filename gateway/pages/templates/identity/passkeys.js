/**
 * Joins forms with `data-passkey` to the browser's passkeys. Such a form is hidden until this runs.
 * Sending it asks `data-options` for a challenge, lets the authenticator answer it, and then sends
 * the form with the answer in its field `credential`: what follows is a page like any other.
 */
;(() => {
  const {
    WebAuthnAbortService,
    browserSupportsWebAuthn,
    browserSupportsWebAuthnAutofill,
    startAuthentication,
    startRegistration,
  } = globalThis.SimpleWebAuthnBrowser
  /** A challenge that waits in the background is renewed long before it runs out. */
  const RENEWED_PART = 0.8

  async function optionsFor(form) {
    const body = new URLSearchParams(new FormData(form))
    body.delete('credential')
    const answer = await fetch(form.dataset.options, {
      method: 'POST',
      headers: { accept: 'application/json' },
      body,
    })
    if (!answer.ok || answer.redirected) throw new Error(`options: ${answer.status}`)
    const { options, location: elsewhere } = await answer.json()
    if (elsewhere === undefined) return options
    location.assign(elsewhere)
    return null
  }

  function send(form, credential) {
    form.elements.credential.value = JSON.stringify(credential)
    form.submit()
  }

  /** Says what happened; nothing, where the person asks for something else meanwhile. */
  function tell(form, error) {
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
      tell(form, error)
    } finally {
      button.disabled = false
    }
  }

  /** Passkeys among what the browser fills into the e-mail field, as long as the page is open. */
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
      // Nobody asked for it: the button and the password are still there.
    }
  }

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
