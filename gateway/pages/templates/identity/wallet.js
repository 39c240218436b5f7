/**
 * Connects the form with `data-wallet` to an Ethereum wallet (EIP-1193, found by EIP-6963 or as `window.ethereum`).
 * Submitting it asks the wallet for an account, requests a message from `data-message`, lets the wallet sign it, and
 * then submits the form with message and signature. The response to the form is an ordinary page.
 */
;(() => {
  /** Error codes of EIP-1193. */
  const REJECTED = 4001
  const form = document.querySelector('form[data-wallet]')
  const status = form.querySelector('[role=status]')
  let announced = null

  addEventListener('eip6963:announceProvider', (event) => {
    announced ??= event.detail?.provider ?? null
  })
  dispatchEvent(new Event('eip6963:requestProvider'))

  const hexOf = (text) =>
    `0x${[...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`

  async function messageFor(account, chainId) {
    const body = new URLSearchParams(new FormData(form))
    body.delete('message')
    body.delete('signature')
    body.set('account', account)
    body.set('chain_id', chainId)
    const answer = await fetch(form.dataset.message, {
      method: 'POST',
      headers: { accept: 'application/json' },
      body,
    })
    if (!answer.ok && answer.status !== 401) throw new Error(`message: ${answer.status}`)
    return answer.json()
  }

  async function sign(wallet) {
    const [account] = await wallet.request({ method: 'eth_requestAccounts' })
    const chainId = String(await wallet.request({ method: 'eth_chainId' }))
    const { message, refused, location: elsewhere } = await messageFor(account, chainId)
    if (elsewhere !== undefined) return location.assign(elsewhere)
    if (message === undefined) {
      status.textContent = refused === 'chain' ? status.dataset.chain : status.dataset.failed
      return
    }
    const params = [hexOf(message), account]
    const signature = await wallet.request({ method: 'personal_sign', params })
    form.elements.message.value = message
    form.elements.signature.value = signature
    form.submit()
  }

  form.hidden = false
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const wallet = announced ?? globalThis.ethereum
    if (wallet === undefined || wallet === null) {
      status.textContent = status.dataset.missing
      return
    }
    const button = form.querySelector('button')
    button.disabled = true
    status.textContent = ''
    sign(wallet)
      .catch((error) => {
        const { cancelled, failed } = status.dataset
        status.textContent = error?.code === REJECTED ? cancelled : failed
      })
      .finally(() => (button.disabled = false))
  })
})()
