export function installOnDemand(folder: string): void;
