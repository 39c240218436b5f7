/**
 * The built-in CAPTCHA: for each element of class `captcha-pow` finds a counter for which SHA-256 of
 * `{challenge}.{counter}` has as many leading zero bits as the challenge names, and puts the answer into the form. A form
 * that is sent before that waits for it. The work is cut into slices so that the page stays usable.
 */
;(() => {
  const SLICE_MS = 12
  const COUNTS_PER_LOOK = 256
  /** Of the challenge before its seal: 16 bytes id, 4 bytes expiry, 1 byte bits. */
  const BITS_AT = 20

  const fractionOf = (root) => ((root - Math.floor(root)) * 0x1_0000_0000) | 0
  const primes = []
  for (let candidate = 2; primes.length < 64; candidate += 1) {
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate)
  }
  const INITIAL = Int32Array.from(primes.slice(0, 8), (prime) => fractionOf(Math.sqrt(prime)))
  const ROUNDS = Int32Array.from(primes, (prime) => fractionOf(Math.cbrt(prime)))
  const words = new Int32Array(64)

  /** One block of SHA-256 (FIPS 180-4 section 6.2) over the state; `words` holds the block. */
  function compress(state) {
    for (let at = 16; at < 64; at += 1) {
      const a = words[at - 15]
      const b = words[at - 2]
      const first = ((a >>> 7) | (a << 25)) ^ ((a >>> 18) | (a << 14)) ^ (a >>> 3)
      const second = ((b >>> 17) | (b << 15)) ^ ((b >>> 19) | (b << 13)) ^ (b >>> 10)
      words[at] = (words[at - 16] + first + words[at - 7] + second) | 0
    }
    let [a, b, c, d, e, f, g, h] = state
    for (let at = 0; at < 64; at += 1) {
      const big1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
      const one = (h + big1 + ((e & f) ^ (~e & g)) + ROUNDS[at] + words[at]) | 0
      const big0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
      const two = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
      h = g
      g = f
      f = e
      e = (d + one) | 0
      d = c
      c = b
      b = a
      a = (one + two) | 0
    }
    return [state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e, state[5] + f,
      state[6] + g, state[7] + h].map((word) => word | 0)
  }

  /** The first word of SHA-256 of a short ASCII text. */
  function firstWord(text) {
    let state = INITIAL
    const blocks = Math.ceil((text.length + 9) / 64)
    for (let block = 0; block < blocks; block += 1) {
      words.fill(0, 0, 16)
      for (let at = 0; at < 64; at += 1) {
        const index = block * 64 + at
        const byte = index < text.length ? text.charCodeAt(index) : index === text.length ? 0x80 : 0
        words[at >> 2] |= byte << (24 - (at & 3) * 8)
      }
      if (block === blocks - 1) words[15] = text.length * 8
      state = compress(state)
    }
    return state[0]
  }

  function bitsOf(challenge) {
    const body = challenge.split('.')[0].replaceAll('-', '+').replaceAll('_', '/')
    return atob(body).charCodeAt(BITS_AT)
  }

  async function solve(challenge) {
    const bits = bitsOf(challenge)
    for (let counter = 0; ; ) {
      const until = performance.now() + SLICE_MS
      while (performance.now() < until) {
        for (let left = COUNTS_PER_LOOK; left > 0; left -= 1, counter += 1) {
          if (Math.clz32(firstWord(`${challenge}.${counter}`)) >= bits) return `${challenge}.${counter}`
        }
      }
      await new Promise((resolve) => setTimeout(resolve))
    }
  }

  for (const box of document.querySelectorAll('.captcha-pow')) {
    const form = box.closest('form')
    const status = document.createElement('p')
    status.className = 'hint'
    status.setAttribute('role', 'status')
    status.textContent = box.dataset.working
    const field = document.createElement('input')
    field.type = 'hidden'
    field.name = 'captcha-response'
    box.append(status, field)
    let waiting = null
    form.addEventListener('submit', (event) => {
      if (field.value !== '') return
      event.preventDefault()
      waiting = event.submitter
    })
    solve(box.dataset.sitekey).then((answer) => {
      field.value = answer
      status.textContent = box.dataset.done
      box.dataset.solved = 'yes'
      if (waiting !== null) form.requestSubmit(waiting)
    })
  }
})()
