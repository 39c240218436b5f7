/**
 * Controls that need a script and are hidden without one. `data-reveal` shows the password of the field that the button
 * controls. `data-copy` copies its text, or without a text the code beside the button. `data-print` prints the page.
 * `data-codes` copies, saves and prints the recovery codes of the page. Answers to a question, and forms with `data-once`,
 * such as a form with a single-use code, are sent once. A form with `data-submit` is sent when the page is shown. A link
 * with `data-onward-within` is followed after these milliseconds: the page itself leads on when its frames are loaded.
 */
;(() => {
  for (const button of document.querySelectorAll('[data-reveal]')) {
    const field = document.getElementById(button.getAttribute('aria-controls'))
    const show = (shown) => {
      field.type = shown ? 'text' : 'password'
      button.setAttribute('aria-pressed', String(shown))
    }
    button.hidden = false
    button.addEventListener('click', () => show(field.type === 'password'))
    // Browsers offer to save passwords of password fields only.
    field.form.addEventListener('submit', () => show(false))
  }

  // Clipboards need a secure context.
  for (const button of document.querySelectorAll(navigator.clipboard ? '[data-copy]' : 'none')) {
    button.hidden = false
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(
        button.dataset.copy || button.parentElement.querySelector('pre').textContent,
      )
      button.textContent = button.dataset.copied
    })
  }

  for (const button of document.querySelectorAll('[data-print]')) {
    button.hidden = false
    button.addEventListener('click', () => globalThis.print())
  }

  // `answers` is one form or several, of which one is sent.
  const once = [...document.querySelectorAll('.answers, form[data-once]')]
  const enable = (group, enabled) => {
    for (const button of group.querySelectorAll('button')) button.disabled = !enabled
  }
  for (const group of once)
    // A disabled button would not be sent with the form, so it is disabled after the form is made.
    group.addEventListener('submit', (event) =>
      setTimeout(() => event.defaultPrevented || enable(group, false), 0),
    )
  // Back shows the page as it was left.
  globalThis.addEventListener('pageshow', () => {
    for (const group of once) enable(group, true)
  })

  document.querySelector('form[data-submit]')?.requestSubmit()

  const onward = document.querySelector('[data-onward-within]')
  if (onward !== null) setTimeout(() => onward.click(), Number(onward.dataset.onwardWithin))

  const tools = document.querySelector('[data-codes]')
  if (tools === null) return
  tools.hidden = false
  const codes = [...document.querySelectorAll('[data-recovery-code]')].map((one) => one.textContent)
  const text = `${tools.dataset.codes}\n\n${codes.join('\n')}\n`
  const status = tools.querySelector('[role=status]')

  const actions = {
    async copy() {
      await navigator.clipboard.writeText(codes.join('\n'))
      status.textContent = tools.dataset.copied
    },
    download() {
      const link = document.createElement('a')
      link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
      link.download = 'recovery-codes.txt'
      link.click()
      URL.revokeObjectURL(link.href)
    },
    print: () => globalThis.print(),
  }
  for (const button of tools.querySelectorAll('[data-do]')) {
    // Clipboards need a secure context.
    if (button.dataset.do === 'copy' && navigator.clipboard === undefined) button.hidden = true
    button.addEventListener('click', () => actions[button.dataset.do]())
  }
})()
