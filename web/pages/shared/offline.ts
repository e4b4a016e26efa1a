// Registers the service worker that lets the pages start without a network (service_worker.js). Only built pages have one.

/** @param root the site's root folder, relative to the page's address */
export function keepForOffline(root: string): void {
  // Missing in a page without a secure context, and in Firefox's private windows.
  const workers = navigator.serviceWorker as ServiceWorkerContainer | undefined;
  if (!import.meta.env.PROD || workers === undefined) return;
  const register = () => {
    const script = new URL('service_worker.js', new URL(root, location.href));
    // The browser looks for a new one by itself, and one that is about to go must not be called back.
    if (workers.controller?.scriptURL === script.href) return;
    // Without it the pages work as before: there is nothing to tell.
    workers.register(script).catch(() => {});
  };
  // What the page itself needs comes first.
  if (document.readyState === 'complete') register();
  else addEventListener('load', register, { once: true });
}
